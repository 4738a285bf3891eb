# SPDX-License-Identifier: Apache-2.0
"""Trainings at a Tinker service, in the files and names of its cookbook."""
