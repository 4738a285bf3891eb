# SPDX-License-Identifier: Apache-2.0
"""Executor ray: what talks to a Ray cluster from outside (`api`), and what runs in it (`supervisor`, `runner`)."""
