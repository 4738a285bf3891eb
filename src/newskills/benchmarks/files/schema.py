# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of files that describe benchmarks, for editors: made of the types, with the names that there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from newskills.benchmarks.files.format import BenchmarkFile
from newskills.benchmarks.files.kinds import KINDS, ROLES
from newskills.graders import GRADERS
from newskills.metrics import METRICS
from newskills.prompts.names import prompt_names
from newskills.solve import SOLVERS

SCHEMA = Path(__file__).with_name("benchmark.schema.json")
"""Written by `python docs/generate.py`."""
ADDRESS = "https://raw.githubusercontent.com/newskills/newskills/main/src/newskills/benchmarks/files/benchmark.schema.json"


def schema_text() -> str:
    """Return the text of the schema."""
    schema: dict[str, Any] = msgspec.json.schema(BenchmarkFile)
    definitions: dict[str, Any] = schema["$defs"]
    for definition in definitions.values():
        if "description" in definition:  # versions of msgspec differ in the blanks of docstrings
            definition["description"] = " ".join(definition["description"].split())
    properties: dict[str, Any] = definitions["BenchmarkFile"]["properties"]
    meanings = "; ".join(f"{name}: {kind.meaning}" for name, kind in KINDS.items())
    properties["kind"]["description"] += f". {meanings}"
    names = {
        "grader": GRADERS.built_in_names(),
        "metric": METRICS.built_in_names(),
        "prompt": prompt_names(),
        "solver": SOLVERS.built_in_names(),
    }
    for key, known_names in names.items():
        _text_schema(properties[key])["examples"] = list(known_names)
    judge = definitions["JudgeSection"]["properties"]
    _text_schema(judge["grader"])["examples"] = names["grader"]
    judge["prompt"]["examples"] = [name for name in names["prompt"] if name.startswith("judge/")]
    columns = properties["columns"]
    columns["properties"] = dict.fromkeys(ROLES, columns["additionalProperties"])
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ADDRESS,
        "title": "A benchmark of newskills, described without Python",
    }
    return msgspec.json.format(msgspec.json.encode({**head, **schema}), indent=1).decode() + "\n"


def _text_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a schema that is about texts."""
    parts: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return next(part for part in parts if part.get("type") == "string")
