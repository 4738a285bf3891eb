# SPDX-License-Identifier: Apache-2.0
"""Replies of models as texts: which part of one answers."""
