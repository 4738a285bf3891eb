# SPDX-License-Identifier: Apache-2.0
"""Graders as rewards: in this process, and over HTTP for trainers."""
