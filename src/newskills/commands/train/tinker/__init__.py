# SPDX-License-Identifier: Apache-2.0
"""`ns tinker …`: trainings at a Tinker service."""
