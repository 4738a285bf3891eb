# SPDX-License-Identifier: Apache-2.0
"""Changes to repositories, judged by tests that run in a container of their own."""
