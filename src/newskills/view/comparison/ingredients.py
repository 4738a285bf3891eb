# SPDX-License-Identifier: Apache-2.0
"""What two runs of a benchmark were made with, and in which of it they differ."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from newskills.base.errors import UnknownNameError
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.view.comparison.origin import run_file
from newskills.view.comparison.records import BenchmarkRecords, RecordContent

Kind = Literal["data", "prompt", "grader", "sampling", "model", "engine", "version"]
MUST_AGREE: tuple[Kind, ...] = ("data", "prompt", "grader")
"""What a comparison of models must not differ in, unless it is told to."""
_SAMPLING = "inference."
_PROMPT = (
    "prompt_format",
    "code_tags",
    "chat_template_kwargs",
    "start_assistant_response_key",
    "structured_output",
)
_ENGINE = ("solver", "solver_config", "selected_by", "tool_modules", "tool_overrides", "max_tool_calls")


class Difference(Struct, frozen=True, kw_only=True):
    """`what` differs: `before` in the first run, `after` in the other; an empty `before`: `after` tells of both."""

    kind: Kind
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        sides = f"{self.before} → {self.after}" if self.before else self.after
        if self.what == self.kind:
            return sides
        return f"{self.what}: {sides}"


def must_agree(names: str) -> tuple[Kind, ...]:
    """Return those of `MUST_AGREE` that are named, comma separated. Raises UnknownNameError."""
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in MUST_AGREE:
            raise UnknownNameError("value of --allow", name, MUST_AGREE)
    return tuple(kind for kind in MUST_AGREE if kind in chosen)


def run_differences(first: BenchmarkRecords, second: BenchmarkRecords) -> list[Difference]:
    """Return everything known to differ; what only one of them records is no difference."""
    pairs = [
        *_described_pairs(first, second),
        ("model", "model", _setting_text(first, "server.model"), _setting_text(second, "server.model")),
        *_engine_pairs(first, second),
        *_setting_pairs(first, second),
        ("sampling", "samples of each problem", str(len(first.files)), str(len(second.files))),
        ("sampling", "seeds", _seed_list(first), _seed_list(second)),
        (
            "version",
            "newskills",
            _value_text(first.facts.get("newskills")),
            _value_text(second.facts.get("newskills")),
        ),
    ]
    from_records = [
        Difference(kind=kind, what=what, before=before, after=after)
        for kind, what, before, after in pairs
        if before != after and before and after
    ]
    return [*_content_differences(first, second), *from_records]


Pair = tuple[Kind, str, str, str]


def _described_pairs(first: BenchmarkRecords, second: BenchmarkRecords) -> list[Pair]:
    before, after = first.facts, second.facts
    judges = object_or_empty(before.get("judge")), object_or_empty(after.get("judge"))
    return [
        ("data", "data hash", _data_hash(first), _data_hash(second)),
        ("data", "split", _value_text(before.get("split")), _value_text(after.get("split"))),
        ("prompt", "prompt", *_with_source(before, after, _prompt_label(before), _prompt_label(after))),
        ("grader", "grader", _grader_label(first), _grader_label(second)),
        ("grader", "score", first.score, second.score),
        ("grader", "judge", *_with_source(*judges, _judge_label(before), _judge_label(after))),
    ]


def _engine_pairs(first: BenchmarkRecords, second: BenchmarkRecords) -> list[Pair]:
    before, after = (run_file(side.folder) for side in (first, second))
    name = first.benchmark
    return [
        ("engine", "server type", before.engine(name), after.engine(name)),
        ("engine", "chat template of", before.tokenizer(name), after.tokenizer(name)),
    ]


def _data_hash(records: BenchmarkRecords) -> str:
    sha256 = object_or_empty(records.facts.get("data")).get("sha256")
    return _value_text(sha256)[:12] or _setting_text(records, "input_file")[:12]


def _prompt_label(facts: Row) -> str:
    if facts.get("prompt_hash"):
        return f"{facts.get('prompt')} {facts.get('prompt_hash')}"
    return ""


def _with_source(before: Row, after: Row, first: str, second: str) -> tuple[str, str]:
    """Return two prompts, each with the source of its wording where their texts differ."""
    sources = [_value_text(facts.get("prompt_source")) for facts in (before, after)]
    if first == second or not all(sources):
        return first, second
    return f"{first}, {sources[0]}", f"{second}, {sources[1]}"


def _grader_label(records: BenchmarkRecords) -> str:
    """Name, version and settings; the records tell better than the file beside them."""
    stamps = ", ".join(sorted(records.graders))
    configured = _value_text(records.facts.get("grader"))
    if stamps and configured.split(" ")[0] == stamps:
        return configured
    return stamps or configured


def _judge_label(facts: Row) -> str:
    judge = object_or_empty(facts.get("judge"))
    if judge:
        return f"{judge.get('model')} {judge.get('prompt_hash')}"
    return ""


def _seed_list(records: BenchmarkRecords) -> str:
    return ", ".join("none" if seed is None else str(seed) for seed in records.seeds)


def _setting_text(records: BenchmarkRecords, name: str) -> str:
    state = next((state for state in records.states if state is not None), None)
    if state is not None:
        return _value_text(state.settings.get(name))
    return ""


def _setting_pairs(first: BenchmarkRecords, second: BenchmarkRecords) -> list[Pair]:
    """Return the settings of both sides that have a kind, with their values; where one side has no value, it
    is `unset`."""
    states = [next((state for state in side.states if state), None) for side in (first, second)]
    if states[0] is None or states[1] is None:
        return []
    before, after = states[0].settings, states[1].settings
    pairs: list[Pair] = []
    for name in dict.fromkeys([*before, *after]):
        kind = _setting_kind(name)
        if kind is not None:
            pairs.append(
                (kind, name, _value_text(before.get(name, "unset")), _value_text(after.get(name, "unset")))
            )
    return pairs


def _setting_kind(name: str) -> Kind | None:
    """Return the kind of a setting; None where it is reported elsewhere, or decides nothing."""
    if name.startswith(_SAMPLING):
        if name.endswith("random_seed"):
            return None
        return "sampling"
    if name in _PROMPT:
        return "prompt"
    if name in _ENGINE or name.startswith(("parallel_thinking.", "server.code_execution.")):
        return "engine"
    if name in ("stop_phrase", "max_samples", "parse_reasoning"):
        return "sampling"
    return None


def _content_differences(first: BenchmarkRecords, second: BenchmarkRecords) -> list[Difference]:
    """Count problems of the same identity that ask or expect something else."""
    both = [(content, second.contents.get(identity)) for identity, content in first.contents.items()]
    other = sum(1 for content, also in both if also is not None and _is_different(content, also))
    if not other:
        return []
    common = sum(1 for _, also in both if also is not None)
    return [
        Difference(
            kind="data",
            what="question or expected answer of problems with the same id",
            before="",
            after=f"{other:,} of {common:,} differ",
        )
    ]


def _is_different(first: RecordContent, second: RecordContent) -> bool:
    return any(a and b and a != b for a, b in zip(first, second, strict=True))


def _value_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value)
