# SPDX-License-Identifier: Apache-2.0
"""Kinds of models that speak OpenAI's wire."""

from __future__ import annotations

from newskills.models.kinds import MODELS

DIALECTS = {name: row.dialect for name, row in MODELS.built_in().items() if row.dialect is not None}
