# SPDX-License-Identifier: Apache-2.0
"""Trainers of others on clusters: their configurations and command lines, and the steps around them inside a job."""
