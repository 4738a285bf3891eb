# SPDX-License-Identifier: Apache-2.0
"""A program of job scripts."""
