# SPDX-License-Identifier: Apache-2.0
"""A model for competition mathematics in three stages: reasoning in words, with programs, then by reward.

Every stage is a few `ns` lines that a person could type; this room only writes them.
"""
