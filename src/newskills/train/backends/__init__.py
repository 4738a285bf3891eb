# SPDX-License-Identifier: Apache-2.0
"""Trainers that run methods: on a CPU, with TRL, at a Tinker service."""
