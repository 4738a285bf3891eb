# SPDX-License-Identifier: Apache-2.0
"""Whether an answer is a JSON document that is valid under the record's schema (https://json-schema.org)."""

from __future__ import annotations

import json
import re
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.records import Cause, Outcome, Row, Score

_FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHOWN = 200


class JsonSchemaGrader:
    """`expected_answer` is the schema (JSON text, or the object). Fields written: `is_correct`, `valid_json`.

    The document is the whole answer or the last fenced block in it. References that lead out of the schema are not
    followed: such a schema, like an invalid one, leaves the sample unscored.
    """

    name = "json_schema"
    version = "1"

    def __init__(self) -> None:
        """Raises ConfigError where jsonschema is not installed."""
        try:
            import jsonschema
            import referencing
        except ImportError as error:
            raise ConfigError(
                "JSON schemas are checked with jsonschema, which is not installed.",
                hint="pip install 'newskills[instructions]'",
            ) from error
        self._jsonschema: Any = jsonschema
        self._referencing: Any = referencing

    def grade(self, record: Row) -> Score:
        text = str(record.get("generation") or "")
        _, end, after = text.rpartition("</think>")
        if not end and "<think>" in text:
            return self._score("no_answer", False, "thinking never ended", "truncation")
        document = _document(after if end else text)
        if not document:
            return self._score("no_answer", False, "no answer", "model")
        try:
            found = json.loads(document)
        except (ValueError, RecursionError) as error:
            return self._score("wrong", False, f"no JSON: {str(error)[:_SHOWN]}", "model")
        return self._validated(record, found)

    def _validated(self, record: Row, found: object) -> Score:
        try:
            schema = record["expected_answer"]
            schema = json.loads(schema) if isinstance(schema, str) else schema
            kind = self._jsonschema.validators.validator_for(schema)
            kind.check_schema(schema)
            validator = kind(schema, registry=self._referencing.jsonschema.EMPTY_REGISTRY)
            problem = next(validator.iter_errors(found), None)
        except (KeyError, ValueError, TypeError, self._jsonschema.SchemaError) as error:
            return self._unscored(f"the schema is invalid: {str(error)[:_SHOWN]}")
        except self._referencing.exceptions.Unresolvable as error:
            return self._unscored(f"the schema refers to something outside: {str(error)[:_SHOWN]}")
        except (re.error, RecursionError) as error:
            return self._unscored(f"the schema cannot be applied: {type(error).__name__}")
        if problem is not None:
            return self._score("wrong", True, f"not valid: {str(problem.message)[:_SHOWN]}", "model")
        return self._score("correct", True, "valid", None)

    def _score(self, outcome: Outcome, parsed: bool, why: str, cause: Cause | None) -> Score:
        fields: Row = {"is_correct": outcome == "correct", "valid_json": parsed}
        return Score(outcome=outcome, fields=fields, grader=f"{self.name}@{self.version}", why=why, cause=cause)

    def _unscored(self, why: str) -> Score:
        fields: Row = {"is_correct": None, "valid_json": True}
        stamp = f"{self.name}@{self.version}"
        return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="data")


def _document(text: str) -> str:
    blocks = _FENCE.findall(f"{text.strip()}\n") if "```" in text else []
    return str(blocks[-1]).strip() if blocks else text.strip()
