# SPDX-License-Identifier: Apache-2.0
"""Benchmarks without Python: a YAML file that describes one, or a file of questions whose columns are guessed."""
