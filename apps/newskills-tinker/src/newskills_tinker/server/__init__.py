# SPDX-License-Identifier: Apache-2.0
"""A service that speaks the Tinker API's wire form on top of the cpu trainer."""
