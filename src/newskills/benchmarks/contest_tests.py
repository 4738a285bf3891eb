# SPDX-License-Identifier: Apache-2.0
"""Tests as LiveCodeBench (arXiv:2403.07974) and what follows it write them."""

import base64
import re
import zlib
from typing import Any

import msgspec

from newskills.base.records import Row
from newskills.benchmarks.downloads.pickled_text import hidden_text

STARTED = "Complete the code that is given below."
READ_AND_PRINT = "Read the input from standard input and print the answer to standard output."


def decode_cases(text: str) -> list[Row]:
    """Decode test cases in JSON, or hidden. Raises DataError, ValueError."""
    cases_text = text if text.lstrip().startswith("[") else hidden_text(text)
    case_list: list[Row] = msgspec.json.decode(cases_text, type=list[Row])
    return case_list


def pack_tests(raw: Row, metadata: Row) -> str:
    """Pack public and private tests together: they can have many megabytes."""
    all_cases = [case for kind in ("public_test_cases", "private_test_cases") for case in decode_cases(raw[kind])]
    called = any(case.get("testtype") == "functional" for case in all_cases)
    value: dict[str, Any] = {
        "inputs": [str(case["input"]) for case in all_cases],
        "outputs": [str(case["output"]) for case in all_cases],
        "function": (metadata.get("func_name") or _function_in(raw["starter_code"])) if called else "",
    }
    return base64.b64encode(zlib.compress(msgspec.json.encode(value), 9)).decode()


def _function_in(starter: str) -> str:
    """Return the name before the first round bracket. Raises ValueError."""
    match = re.search(r"(\w+)\s*\(", re.sub(r"/\*.*?\*/|//[^\n]*", " ", starter, flags=re.DOTALL))
    if match is None:
        raise ValueError("the tests call a function, and `starter_code` has none")
    return match[1]


def decode_metadata(raw: Row) -> Row:
    metadata = raw.get("metadata") or {}
    if isinstance(metadata, str):
        return msgspec.json.decode(metadata, type=dict[str, Any])
    return dict(metadata)


def contest_prompt_fields(raw: Row) -> Row:
    """Return the fields that prompts for contests ask with."""
    starter = raw.get("starter_code") or ""
    return {
        "question_content": raw["question_content"],
        "starter_code": starter,
        "formatting_message": STARTED if starter else READ_AND_PRINT,
    }
