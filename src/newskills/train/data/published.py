# SPDX-License-Identifier: Apache-2.0
"""Published training sets: where they are, their licence, and how a row of theirs becomes one of ours.

Ours: `problem`, `generation` (a solution, where there is one), `expected_answer` (text), and what the set says
besides. Pages: https://huggingface.co/datasets/<hf>.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, UnknownNameError
from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.train.data.filters.solutions import boxed_answer

FILE = "_file"
"""A field of every row that was read: where it comes from, not what its set says."""
_TRAIN: Mapping[str, str] = MappingProxyType({"train": "default/train"})


class Schema(Struct, frozen=True, kw_only=True):
    """`fields`: that each row has, by which the set is recognised; `splits`: name → hub `configuration/split`.

    `row` returns None for rows that are not meant for training; it raises KeyError, TypeError for a row of another
    set. `url`: a file on the web, `{split}` in it, for sets that are not on the hub.
    """

    name: str
    licence: str
    fields: frozenset[str]
    row: Callable[[Row], Row | None]
    aliases: tuple[str, ...] = ()
    hf: str = ""
    url: str = ""
    format: str = "jsonl"
    splits: Mapping[str, str] = _TRAIN

    def map_row(self, row: Row, place: Callable[[], object]) -> Row | None:
        """Return `row` as one of ours. Raises DataError for a row of another set; only then is its `place` asked
        for."""
        try:
            return self.row(row)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
            raise DataError(
                f"{place()}: this is not a row of {self.name} ({type(error).__name__}: {error}); its fields "
                f"are {', '.join(sorted(str(name) for name in row if name != '_file'))}."
            ) from error


def _numina_row(row: Row) -> Row:
    return _solved_row(row["problem"], row["solution"], boxed_answer(row["solution"]), source=row.get("source"))


def _math_reasoning(row: Row) -> Row:
    rate = _known_value(row.get("pass_rate_72b_tir"))
    return {
        **_solved_row(
            row["problem"], _known_value(row["generated_solution"]), _known_value(row["expected_answer"])
        ),
        "problem_type": row.get("problem_type"),
        "problem_source": row.get("problem_source"),
        "generation_model": row.get("generation_model"),
        "pass_rate_72b_tir": None if rate is None else float(rate),
        "inference_mode": row.get("inference_mode"),
        "used_in_kaggle": row.get("used_in_kaggle"),
    }


def _known_value(value: Any) -> Any:
    """Return the value, or None for "n/a" and empty ones: the set writes "n/a" for what it does not know."""
    if value is None or str(value).strip().lower() in ("n/a", ""):
        return None
    return value


def _math_instruct(row: Row) -> Row:
    return _solved_row(
        row["problem"], row["generated_solution"], row["expected_answer"], problem_source=row["problem_source"]
    )


_ASKED = "Solve the following math problem step by step."
_REMINDED = "Remember to put your answer"


def _dapo_row(row: Row) -> Row:
    return _solved_row(
        _bare_question(_last_user(row["prompt"])),
        None,
        row["reward_model"]["ground_truth"],
        source=row["data_source"],
    )


def _dapo_slime(row: Row) -> Row:
    prompt = row["prompt"]
    question = prompt if isinstance(prompt, str) else _last_user(prompt)
    return _solved_row(_bare_question(question), None, row["label"])


def _bare_question(text: str) -> str:
    """Strip the instructions that the set puts around each problem, as paragraphs of their own."""
    if text.startswith(_ASKED):
        text = text.partition("\n\n")[2] or text
    before, _, after = text.rpartition("\n\n")
    if before and after.startswith(_REMINDED):
        return before
    return text


def _last_user(messages: Any) -> str:
    return str([message["content"] for message in messages if message["role"] == "user"][-1])


def _math_hard(row: Row) -> Row:
    solution = row["solution"]
    return _solved_row(row["problem"], solution, boxed_answer(solution), level=row["level"], type=row["type"])


_LAST_LINE = re.compile(r"####[ \t]*([^\n]+)")


def _gsm8k_row(row: Row) -> Row:
    answers = _LAST_LINE.findall(row["answer"])
    return _solved_row(row["question"], row["answer"], answers[-1].strip().replace(",", ""))


def _deepscaler_row(row: Row) -> Row:
    return _solved_row(row["problem"], row.get("solution"), row["answer"], difficulty=row["difficulty"])


def _conversation_row(row: Row) -> Row | None:
    """Convert a dialogue: all before the assistant's first turn is the problem, the rest the solution; None where
    nothing stands before an assistant's turn."""
    messages = [_plain_message(message) for message in row["messages"]]
    first = next((at for at, message in enumerate(messages) if message["role"] == "assistant"), 0)
    if not first:
        return None
    questions = [message["content"] for message in messages[:first] if message["role"] == "user"]
    return {
        "problem": questions[-1] if questions else messages[first - 1]["content"],
        "generation": messages[-1]["content"] or "",
        "prompt_messages": messages[:first],
        "serialized_output": messages[first:],
        **({"tools": _from_json(row["tools"])} if row.get("tools") else {}),
    }


def _plain_message(message: Row) -> Row:
    """Join contents in parts (`{type, value}`) to one text; reasoning and calls of tools get fields of their
    own."""
    content = message["content"]
    if not isinstance(content, list):
        return {**message, "content": content}
    texts: dict[str, list[str]] = {}
    for part in content:
        texts.setdefault(part["type"], []).append(str(part.get("value", part.get("text", ""))))
    plain: Row = {"role": message["role"], "content": "".join(texts.pop("text", []))}
    if "reasoning" in texts:
        plain["reasoning_content"] = "".join(texts.pop("reasoning"))
    if "tool_call" in texts:
        calls = map(_from_json, texts.pop("tool_call"))
        plain["tool_calls"] = [{"type": "function", "function": call} for call in calls]
    return plain | texts


def _from_json(value: Any) -> Any:
    """Decode a text with JSON; return other values as they are. Raises ValueError."""
    if isinstance(value, str):
        return msgspec.json.decode(value)
    return value


def _solved_row(problem: Any, generation: Any, answer: Any, **more: Any) -> Row:
    row: Row = {"problem": problem}
    if generation is not None:
        row["generation"] = generation
    if answer is not None:
        row["expected_answer"] = str(answer)
    return row | {key: value for key, value in more.items() if value is not None}


_TRIPLE = frozenset({"problem", "solution", "messages"})
_TABLE = (
    Schema(
        name="numinamath-cot",
        aliases=("numina_math_cot",),
        hf="AI-MO/NuminaMath-CoT",
        licence="Apache-2.0",
        fields=_TRIPLE | {"source"},
        row=_numina_row,
        splits={"train": "default/train", "test": "default/test"},
    ),
    Schema(
        name="numinamath-tir",
        aliases=("numina_math_tir",),
        hf="AI-MO/NuminaMath-TIR",
        licence="Apache-2.0",
        fields=_TRIPLE,
        row=_numina_row,
        splits={"train": "default/train", "test": "default/test"},
    ),
    Schema(
        name="openmathreasoning",
        hf="nvidia/OpenMathReasoning",
        licence="CC-BY-4.0",
        fields=frozenset(
            {"problem", "generated_solution", "expected_answer", "inference_mode", "pass_rate_72b_tir"}
        ),
        row=_math_reasoning,
        splits={name: f"default/{name}" for name in ("cot", "tir", "genselect", "additional_problems")},
    ),
    Schema(
        name="openmathinstruct-2",
        aliases=("openmathinstruct2",),
        hf="nvidia/OpenMathInstruct-2",
        licence="CC-BY-4.0",
        fields=frozenset({"problem", "generated_solution", "expected_answer", "problem_source"}),
        row=_math_instruct,
        splits={name: f"default/{name}" for name in ("train", "train_1M", "train_2M", "train_5M")},
    ),
    Schema(
        name="dapo-math-17k",
        aliases=("dapo_math",),
        hf="BytedTsinghua-SIA/DAPO-Math-17k",
        licence="Apache-2.0",
        fields=frozenset({"data_source", "prompt", "reward_model"}),
        row=_dapo_row,
    ),
    Schema(
        name="dapo-math-17k-slime",
        hf="zhuzilin/dapo-math-17k",
        licence="unstated",
        fields=frozenset({"prompt", "label"}),
        row=_dapo_slime,
    ),
    Schema(
        name="math-hard",
        hf="lighteval/MATH-Hard",
        licence="MIT",
        fields=frozenset({"problem", "solution", "level", "type"}),
        row=_math_hard,
        splits={"train": "default/train", "test": "default/test"},
    ),
    Schema(
        name="gsm8k-train",
        url="https://raw.githubusercontent.com/openai/grade-school-math/master/grade_school_math/data/{split}.jsonl",
        licence="MIT",
        fields=frozenset({"question", "answer"}),
        row=_gsm8k_row,
        splits={"train": ""},
    ),
    Schema(
        name="deepscaler",
        url="https://raw.githubusercontent.com/agentica-project/rllm/main/rllm/data/train/math/{split}.json",
        format="json",
        licence="MIT",
        fields=frozenset({"problem", "answer", "difficulty"}),
        row=_deepscaler_row,
        splits={"aime": "", "math": ""},
    ),
    Schema(
        name="messages",
        licence="that of the file",
        fields=frozenset({"messages"}),
        row=_conversation_row,
        splits={},
    ),
)
SCHEMAS: Mapping[str, Schema] = {schema.name: schema for schema in _TABLE}


def schema_of(name: str) -> Schema:
    """Return the schema of this name or alias. Raises UnknownNameError."""
    for schema in _TABLE:
        if fold(name) in map(fold, (schema.name, *schema.aliases)):
            return schema
    raise UnknownNameError("training set", name, SCHEMAS)


def is_published(name: str) -> bool:
    return any(fold(name) in map(fold, (schema.name, *schema.aliases)) for schema in _TABLE)


def resembling_schema(row: Row) -> str:
    """Return the name of the set that a row seems to be of: of those all of whose fields it has, that with the most;
    empty where there is none."""
    fitting = [schema for schema in _TABLE if schema.fields <= row.keys()]
    if fitting:
        return max(fitting, key=lambda schema: len(schema.fields)).name
    return ""
