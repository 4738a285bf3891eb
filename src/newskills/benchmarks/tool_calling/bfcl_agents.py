# SPDX-License-Identifier: Apache-2.0
"""The agents of the Berkeley Function-Calling Leaderboard: answers from memory, and from searches of the web."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import PurePosixPath

from msgspec import structs

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row
from newskills.benchmarks.tool_calling import bfcl

MEMORIES = {"kv": "texts under keys", "vector": "texts found by meaning", "rec_sum": "one text that is rewritten"}
SEARCHES = {"base": "excerpts of pages are shown", "no_snippet": "pages have to be opened"}
SETTINGS = {
    "customer": "You work in the customer service of an online shop and know its customers.",
    "finance": "You are the assistant of a manager in finance, in matters of work and of the family.",
    "healthcare": "You look after a patient between visits and know the history, treatment and wishes.",
    "notetaker": "You keep someone's notes: tasks, dates, and what is liked.",
    "student": "You help a student with courses and plans over many conversations.",
}
_FORM = "End with one line: Answer: followed by the answer alone, or by 'unknown' if you {cannot}."
_HEDGEABLE = "a right answer may stand anywhere in the last message, as the leaderboard scores it"
_RECALLED = "Answer the question with the help of your notes. " + _FORM.format(cannot="do not know it")
_SEARCHED = "Answer the question with the help of web searches. " + _FORM.format(cannot="could not find it")


def memory_benchmark(kind: str) -> Benchmark:
    """Make `bfcl_v4.memory_<kind>`: 155 questions about 37 earlier conversations in five scenarios."""
    files = (f"memory_prereq_conversation/memory_{name}" for name in SETTINGS)
    return structs.replace(
        bfcl.bfcl_benchmark("v4", "simple_python"),
        name=f"bfcl_v4.memory_{kind}",
        title=f"BFCL v4: memory, {MEMORIES[kind]}",
        sources=(bfcl.bfcl_source("memory", (*files, f"multi_turn_func_doc/memory_{kind}")),),
        join=_join_sessions,
        row=partial(_memory_row, kind),
        solver="memory_calls",
        defaults={"prompt_format": "openai", "solver_config": {"memory": kind}},
        hedgeable=_HEDGEABLE,
        items={"test": 155},
        requires="newskills[embeddings]" if kind == "vector" else "",
        traps=(
            "The earlier conversations are held first, once per seed: about 330 turns before the first answer.",
            "In chunks, each chunk holds them again; leave this one whole.",
            "What the model is told about its memory is in our words, not the leaderboard's.",
        ),
    )


def web_search(kind: str) -> Benchmark:
    """Make `bfcl_v4.web_search_<kind>`: questions of several hops, answered with the tool `tavily`."""
    settings = {"open_pages": True, "max_results": 10, "excerpts": kind == "base"}
    return structs.replace(
        bfcl.bfcl_benchmark("v4", "simple_python"),
        name=f"bfcl_v4.web_search_{kind}",
        title=f"BFCL v4: web search, {SEARCHES[kind]}",
        sources=(bfcl.bfcl_source("web_search"),),
        row=partial(_search_row, kind),
        solver="tools",
        defaults={
            "prompt_format": "openai",
            "tool_modules": ["tavily"],
            "tool_overrides": {"tavily": settings},
        },
        hedgeable=_HEDGEABLE,
        items={"test": 100},
        data="" if kind == "base" else "bfcl_v4.web_search_base",
        traps=(
            "Our own search tool is used (TAVILY_API_KEY), the leaderboard's is another: scores are not comparable.",
            "Answers are of April 2025; what the web says today may differ.",
        ),
    )


def _join_sessions(rows: Iterable[Row]) -> Iterable[Row]:
    """Join questions with their answers, the conversations of their scenario, and the functions of the memory."""
    questions: list[Row] = []
    answers: dict[str, Row] = {}
    sessions: dict[str, list[list[str]]] = {}
    functions: list[Row] = []
    for raw in rows:
        folder = PurePosixPath(raw["_file"]).parent.name
        if folder == "possible_answer":
            answers[raw["id"]] = raw
        elif folder == "memory_prereq_conversation":
            texts = [message["content"] for turn in raw["question"] for message in turn]
            sessions.setdefault(raw["scenario"], []).append(texts)
        elif folder == "multi_turn_func_doc":
            functions.append(raw)
        else:
            questions.append(raw)
    for raw in questions:
        gold = answers[raw["id"]]["ground_truth"]
        yield {**raw, "ground_truth": gold, "sessions": sessions[raw["scenario"]], "function": functions}


def _memory_row(kind: str, raw: Row, index: int) -> Row:
    functions = [{key: doc[key] for key in ("name", "description", "parameters")} for doc in raw["function"]]
    return {
        "id": raw["id"].replace("memory", f"memory_{kind}"),
        "question": raw["question"],
        "messages": [{"role": "system", "content": _RECALLED}, *raw["question"][0]],
        "tools": [bfcl.openai_tool(function) for function in functions],
        "check": "answer",
        "ground_truth": raw["ground_truth"],
        "memory": kind,
        "scenario": raw["scenario"],
        "setting": SETTINGS[raw["scenario"]],
        "sessions": raw["sessions"],
        "subset_for_metrics": raw["scenario"],
    }


def _search_row(kind: str, raw: Row, index: int) -> Row:
    return {
        "id": raw["id"],
        "question": raw["question"],
        "messages": [{"role": "system", "content": _SEARCHED}, *raw["question"][0]],
        "check": "answer",
        "ground_truth": raw["ground_truth"],
        "num_hops": raw["num_hops"],
    }
