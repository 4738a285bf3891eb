# SPDX-License-Identifier: Apache-2.0
"""Addresses by which others call newskills-evaluator; each module only forwards to it."""
