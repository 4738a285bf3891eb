# SPDX-License-Identifier: Apache-2.0
"""Modules under the names that the reference system gives them, for scripts that run them with `python -m`."""
