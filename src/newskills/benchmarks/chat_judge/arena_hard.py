# SPDX-License-Identifier: Apache-2.0
"""Answers of a model against those of a baseline, as a judge prefers them.

Arena-Hard (Li et al. 2024, arXiv:2406.11939), m-ArenaHard (arXiv:2412.04261).
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Judge, RowMapper, Source
from newskills.base.errors import ConfigError
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Row
from newskills.benchmarks.options import rows_changed, single_value, sources_with

_URL = "https://raw.githubusercontent.com/lmarena/arena-hard-auto/main/data/"
_COMMIT = "196f6b826783b3da7310e361a805fa36f0be83f3"
_CREATIVE = "creative_writing"
_BASELINES = {"hard_prompt": "o3-mini-2025-01-31", _CREATIVE: "gemini-2.0-flash-001"}
_LANGUAGES = "{ar,cs,de,el,en,es,fa,fr,he,hi,id,it,ja,ko,nl,pl,pt,ro,ru,tr,uk,vi,zh}"
_NO_BASELINE = "No baseline comes with the data: give a model's answers with ns prepare_data --baseline_file."


def _answer_text(raw: Row) -> str:
    content = raw["messages"][-1]["content"]
    return str(content["answer"] if isinstance(content, dict) else content)


def join_baseline_answers(raw: Iterable[Row]) -> Iterator[Row]:
    """Join questions, and the answers of baselines behind them, to questions with all answers to them, by
    model."""
    questions: list[Row] = []
    answers: dict[str, dict[str, str]] = {}
    for row in raw:
        if "messages" in row:
            answers.setdefault(row["uid"], {})[row["model"]] = _answer_text(row)
        else:
            questions.append(row)
    for row in questions:
        yield {**row, "answers": answers.get(row["uid"], {})}


def v0_1_row(raw: Row, index: int) -> Row:
    return {
        "id": raw["uid"],
        "uid": raw["uid"],
        "question": raw["prompt"],
        "baseline_answer": raw["answers"]["gpt-4-0314"],
        "cluster": raw["cluster"],
    }


def v2_row(raw: Row, index: int) -> Row:
    return {
        "id": raw["uid"],
        "uid": raw["uid"],
        "category": raw["category"],
        "subcategory": raw["subcategory"],
        "question": raw["prompt"],
        "baseline_answer": raw["answers"][_BASELINES[raw["category"]]],
    }


def hard_prompt_row(raw: Row, index: int) -> Row | Drop:
    if raw["category"] != _CREATIVE:
        return v2_row(raw, index)
    return OTHER_SPLIT


def multilingual_row(raw: Row, index: int) -> Row:
    language = raw.get("language") or raw["_config"]
    row = {
        "id": f"{language}-{raw['question_id']}",
        "question": raw["prompt"],
        "question_id": raw["question_id"],
        "category": raw["category"],
    }
    if "subcategory" in raw:
        row["subcategory"] = raw["subcategory"]
    else:
        row["original_category"] = raw["category"]
    if "cluster" in raw:
        row["cluster"] = raw["cluster"]
    row |= {"language": language, "subset_for_metrics": language}
    if raw.get("baseline_answer"):
        row["baseline_answer"] = raw["baseline_answer"]
    return row


@cache
def _read_baseline_answers(file: str) -> dict[str, str]:
    """Read question → answer of a JSONL file as `ns generate` and `ns eval` write it. Raises ConfigError."""
    try:
        with Path(file).open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines if line.strip()]
        return {row["question"]: without_thinking(str(row["generation"])) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"--baseline_file={file} is not JSONL with question and generation: {error}.") from error


def _with_baseline_answer(row: Row, values: tuple[str, ...]) -> Row:
    file = single_value("--baseline_file", values)
    if row["question"] not in (answers := _read_baseline_answers(file)):
        raise ValueError(f"{file} has no answer to {row['question'][:80]!r}")
    return {**row, "baseline_answer": answers[row["question"]]}


_MULTILINGUAL = {
    "languages": sources_with("config", "only these languages", *_LANGUAGES.strip("{}").split(","), usual="all"),
    "baseline_file": rows_changed(
        "JSONL with the baseline's answers (question, generation)", _with_baseline_answer
    ),
}


def arena_judge(model: str = "", *, creative: bool = False) -> Judge:
    defaults = {}
    if creative:
        defaults = {"solver_config": {"prompts": {_CREATIVE: "judge/arena_creative"}}}
    return Judge(
        prompt="judge/arena",
        kind="arena",
        grader="arena",
        model=model,
        server_type="openai" if model else "",
        defaults=defaults,
    )


def _benchmark(
    name: str, title: str, row: RowMapper, *sources: Source, category: str = "chat-judge", **more: object
) -> Benchmark:
    return Benchmark(
        name=name,
        category=category,
        title=title,
        sources=sources,
        row=row,
        prompt="generic/default",
        grader="",
        metric="arena",
        chance=0.5,
        **more,  # type: ignore[arg-type]
    )


BENCHMARKS = (
    _benchmark(
        "arena-hard",
        "Arena-Hard v0.1: 500 requests, against GPT-4 (0314)",
        v0_1_row,
        Source(url=f"{_URL}arena-hard-v0.1/{{question.jsonl,model_answer/gpt-4-0314.jsonl}}", revision=_COMMIT),
        aliases=("arena_hard",),
        join=join_baseline_answers,
        judge=arena_judge("gpt-4.1"),
        items={"test": 500},
        licence="Apache-2.0",
        homepage="https://github.com/lmarena/arena-hard-auto",
        citation="arXiv:2406.11939",
        traps=(
            "This is v0.1; v2 has other requests and baselines: their scores cannot be compared.",
            "Verdicts such as [[A<B]] and [[A<<B]] count as the original scorer of v2 counts them, as games lost; "
            "NeMo-Skills calls them invalid.",
        ),
    ),
    _benchmark(
        "arena-hard-v2",
        "Arena-Hard v2.0: hard prompts and creative writing",
        v2_row,
        Source(
            url=f"{_URL}arena-hard-v2.0/"
            "{question.jsonl,model_answer/o3-mini-2025-01-31.jsonl,model_answer/gemini-2.0-flash-001.jsonl}"
        ),
        Source(
            split="hard_prompt",
            url=f"{_URL}arena-hard-v2.0/{{question.jsonl,model_answer/o3-mini-2025-01-31.jsonl}}",
            revision=_COMMIT,
        ),
        aliases=("ns_arena_hard_v2",),
        variants={"hard_prompt": hard_prompt_row},
        join=join_baseline_answers,
        judge=arena_judge("gpt-4.1", creative=True),
        items={"test": 750, "hard_prompt": 500},
        licence="Apache-2.0",
        homepage="https://github.com/lmarena/arena-hard-auto",
        citation="arXiv:2406.11939",
        unverified=True,
        traps=(
            "Hard prompts are compared with o3-mini-2025-01-31, creative writing with gemini-2.0-flash-001.",
            "Creative writing has a judge's prompt of its own; the split hard_prompt leaves it out.",
        ),
    ),
    _benchmark(
        "m-arena-hard",
        "m-ArenaHard: Arena-Hard in 23 languages",
        multilingual_row,
        Source(hf="CohereLabs/m-ArenaHard", config=_LANGUAGES),
        category="multilingual",
        options=_MULTILINGUAL,
        aliases=("m_arena_hard",),
        judge=arena_judge("openai/openai/gpt-5.2"),
        items={"test": 23 * 500},
        licence="Apache-2.0",
        homepage="https://huggingface.co/datasets/CohereLabs/m-ArenaHard",
        citation="arXiv:2412.04261",
        unverified=True,
        traps=(_NO_BASELINE,),
    ),
    _benchmark(
        "m-arena-hard-v2",
        "m-ArenaHard v2: Arena-Hard v2 in 23 languages",
        multilingual_row,
        Source(hf="CohereLabs/m-ArenaHard-v2.0", config=_LANGUAGES),
        category="multilingual",
        options=_MULTILINGUAL,
        judge=arena_judge("openai/openai/gpt-5.2", creative=True),
        licence="Apache-2.0",
        homepage="https://huggingface.co/datasets/CohereLabs/m-ArenaHard-v2.0",
        citation="arXiv:2412.04261",
        unverified=True,
        traps=(_NO_BASELINE,),
    ),
)
