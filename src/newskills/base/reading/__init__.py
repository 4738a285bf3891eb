# SPDX-License-Identifier: Apache-2.0
"""Reads what models and others have written: replies, files of rows, values of JSON."""
