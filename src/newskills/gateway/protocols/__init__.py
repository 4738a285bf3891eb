# SPDX-License-Identifier: Apache-2.0
"""Protocols by which programs ask: one file each."""
