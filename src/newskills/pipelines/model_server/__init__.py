# SPDX-License-Identifier: Apache-2.0
"""Servers of models, here or as jobs."""
