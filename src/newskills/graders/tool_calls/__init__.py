# SPDX-License-Identifier: Apache-2.0
"""Calls of functions that a model asks for, compared with the calls that were wanted (BFCL and its relatives)."""
