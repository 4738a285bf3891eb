# SPDX-License-Identifier: Apache-2.0
"""OpenHands as an agent."""
