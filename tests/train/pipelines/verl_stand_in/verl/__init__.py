# SPDX-License-Identifier: Apache-2.0
"""Plays verl: reads the overrides and the rows, asks for rewards, saves checkpoints in verl's layout."""
