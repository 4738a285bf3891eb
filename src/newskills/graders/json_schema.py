# SPDX-License-Identifier: Apache-2.0
"""Whether an answer is a JSON document that is valid under the record's schema (https://json-schema.org)."""

from __future__ import annotations

import json
import re
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

_FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHOWN = 200
_STAMP = "json_schema@1"


class JsonSchemaGrader:
    """`expected_answer` is the schema (JSON text, or the object). Fields written: `is_correct`, `valid_json`.

    The document is the whole answer or the last fenced block in it. References that lead out of the schema are not
    followed: such a schema, like an invalid one, leaves the sample unscored.
    """

    name = "json_schema"
    version = "2"
    answer_keys = ("generation",)

    def __init__(self) -> None:
        """Import jsonschema. Raises ConfigError where it is not installed."""
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

    def gold_reply(self, record: Row) -> str | None:
        """Return the first example of the schema as JSON; None where it has none."""
        schema = record["expected_answer"]
        if isinstance(schema, str):
            schema = json.loads(schema)
        examples = schema.get("examples") if isinstance(schema, dict) else None
        if isinstance(examples, list) and examples:
            return json.dumps(examples[0])
        return None

    def same_replies(self, record: Row) -> list[str]:
        """Return a reply with the document in a fence; an empty list where the schema has no example."""
        document = self.gold_reply(record)
        if document is None:
            return []
        return [f"Here it is:\n```json\n{document}\n```"]

    def grade(self, record: Row) -> Score:
        document = _json_text(visible_reply(str(record.get("generation") or "")) or "")
        if not document:
            return no_answer_score(_STAMP, record, _score_fields(False, False))
        try:
            value = json.loads(document)
        except (ValueError, RecursionError) as error:
            return verdict_score(_STAMP, False, _score_fields(False, False), f"no JSON: {str(error)[:_SHOWN]}")
        return self._validated(record, value)

    def _validated(self, record: Row, value: object) -> Score:
        try:
            schema = record["expected_answer"]
            if isinstance(schema, str):
                schema = json.loads(schema)
            kind = self._jsonschema.validators.validator_for(schema)
            kind.check_schema(schema)
            validator = kind(schema, registry=self._referencing.jsonschema.EMPTY_REGISTRY)
            problem = next(validator.iter_errors(value), None)
        except (KeyError, ValueError, TypeError, self._jsonschema.SchemaError) as error:
            return ungradable_score(
                _STAMP, f"the schema is invalid: {str(error)[:_SHOWN]}", _score_fields(None, True)
            )
        except self._referencing.exceptions.Unresolvable as error:
            return ungradable_score(
                _STAMP, f"the schema refers to something outside: {error}"[:_SHOWN], _score_fields(None, True)
            )
        except (re.error, RecursionError) as error:
            return ungradable_score(
                _STAMP, f"the schema cannot be applied: {type(error).__name__}", _score_fields(None, True)
            )
        why = "valid"
        if problem is not None:
            why = f"not valid: {str(problem.message)[:_SHOWN]}"
        return verdict_score(_STAMP, problem is None, _score_fields(problem is None, True), why)


def _score_fields(correct: bool | None, parsed: bool) -> Row:
    return {"is_correct": correct, "valid_json": parsed}


def _json_text(text: str) -> str:
    text = text.strip()
    if "```" in text and (blocks := _FENCE.findall(f"{text}\n")):
        return str(blocks[-1]).strip()
    return text
