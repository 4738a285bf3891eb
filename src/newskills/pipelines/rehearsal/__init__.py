# SPDX-License-Identifier: Apache-2.0
"""Submissions, tried on this machine."""
