# SPDX-License-Identifier: Apache-2.0
"""Addresses by which others and job scripts call newskills-evaluator; each module only forwards to it."""
