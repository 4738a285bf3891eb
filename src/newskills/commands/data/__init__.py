# SPDX-License-Identifier: Apache-2.0
"""Data: fetched, checked, generated, built."""
