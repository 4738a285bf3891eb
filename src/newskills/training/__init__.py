# SPDX-License-Identifier: Apache-2.0
"""Modules under the names that NeMo-Skills gives them, for scripts that run them with `python -m`."""
