# SPDX-License-Identifier: Apache-2.0
"""Calls of tools and functions: loops, conversations, memories."""
