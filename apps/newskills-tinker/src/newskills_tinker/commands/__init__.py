# SPDX-License-Identifier: Apache-2.0
"""`ns tinker …`: trainings at a Tinker service; and `ns serve_tinker`, such a service."""
