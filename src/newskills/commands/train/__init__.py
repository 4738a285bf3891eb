# SPDX-License-Identifier: Apache-2.0
"""Trainings, and the models that come out of them."""
