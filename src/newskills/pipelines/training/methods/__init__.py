# SPDX-License-Identifier: Apache-2.0
"""Trainings by our own trainers, here or as jobs: for each method, how its data is made of options and files."""
