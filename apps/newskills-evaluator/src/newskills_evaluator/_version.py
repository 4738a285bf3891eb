# SPDX-License-Identifier: Apache-2.0
"""The version; pyproject.toml reads it here."""

__version__ = "0.2.0"
