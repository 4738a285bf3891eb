# SPDX-License-Identifier: Apache-2.0
"""Answers of a few words: exact match and F1, as the authors of each benchmark compute them."""
