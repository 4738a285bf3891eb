# SPDX-License-Identifier: Apache-2.0
"""The Tinker API (https://tinker-docs.thinkingmachines.ai): training at any such service."""
