# SPDX-License-Identifier: Apache-2.0
"""A training as it went: curves of what each step measured, settings, checkpoints, and samples by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec

from newskills.base.reading.json_values import list_or_empty, object_or_empty
from newskills.base.records import Row
from newskills.train.loops.folder import CHECKPOINTS, EXAMPLES, METRICS, SAMPLES, SETTINGS, explained_file
from newskills.view.files import finite_number, read_json
from newskills.view.folders import Folders
from newskills.view.library import Library
from newskills.view.pages.curves import GROUPS, SMALL_GROUPS, component_rows, curve_series
from newskills.view.records import as_text, shorten_texts

MOST_ROLLOUTS = 50
"""Problems of a step."""
_decoder = msgspec.json.Decoder(dict[str, Any])
_LONGEST_LINE = 32 << 20


def training_page(library: Library, names: list[str]) -> Row:
    """Return several trainings to be laid over each other. Raises UnknownNameError."""
    return {
        "trainings": [_training_page(library, name) for name in names],
        "groups": list(GROUPS),
        "small_groups": list(SMALL_GROUPS),
    }


def step_rollouts(library: Library, name: str, step: int) -> list[Row]:
    """Return samples that were taken at a step, at most `MOST_ROLLOUTS` problems. Raises UnknownNameError."""
    folder = library.training(name).folder
    explained = iter(_explained_tokens(library.folders, explained_file(folder, step)))
    samples: list[Row] = []
    for row in _object_rows(library.folders, folder / SAMPLES):
        if row.get("step") == step:
            tokens = next(explained, [])
            samples.append(shorten_texts(_rollout_row(row, tokens), 20_000))
            if len(samples) >= MOST_ROLLOUTS:
                break
    return samples


def _training_page(library: Library, name: str) -> Row:
    folder = library.training(name).folder
    rows = list(_object_rows(library.folders, folder / METRICS))
    sampled = [
        (step, [_reward_components(response) for response in list_or_empty(row.get("responses"))])
        for row in _object_rows(library.folders, folder / SAMPLES)
        if isinstance(step := row.get("step"), int)
    ]
    steps = sorted({step for step, _ in sampled})
    if not any(name.startswith("reward/") for row in rows for name in row):
        rows += component_rows(sampled)
    settings = read_json(library.folders, folder / SETTINGS) or read_json(library.folders, folder / "config.json")
    return {
        "id": name,
        "folder": str(folder),
        "series": curve_series(rows),
        "settings": shorten_texts(settings, 2_000),
        "checkpoints": [
            {"step": row.get("step"), "name": as_text(row.get("name")), "final": bool(row.get("final"))}
            for row in _object_rows(library.folders, folder / CHECKPOINTS)
        ],
        "sample_steps": steps,
        "most_rollouts": MOST_ROLLOUTS,
        "explained_steps": [step for step in steps if explained_file(folder, step).is_file()],
        "examples": [shorten_texts(row, 20_000) for row in _object_rows(library.folders, folder / EXAMPLES)],
        "last_step": max(
            (step for row in rows if (step := finite_number(row.get("step"))) is not None), default=None
        ),
    }


def _explained_tokens(folders: Folders, path: Path) -> list[list[list[Row]]]:
    """Return the tokens of each response of each group of a step that was explained, with the logarithms of their
    chances before and after the step; none where it was not."""
    return [
        [_token_rows(response) for response in group.get("responses") or ()]
        for group in list_or_empty(read_json(folders, path).get("groups"))
        if isinstance(group, dict)
    ]


def _token_rows(response: Row) -> list[Row]:
    return [
        {"text": as_text(token[0]), "before": finite_number(token[1]), "after": finite_number(token[2])}
        for token in response.get("tokens") or ()
        if isinstance(token, list) and len(token) == 3
    ]


def _reward_components(response: object) -> dict[str, float]:
    """Return what the reward of a response is the sum of."""
    components = object_or_empty(object_or_empty(response).get("components"))
    return {
        str(name): figure for name, value in components.items() if (figure := finite_number(value)) is not None
    }


def _rollout_row(row: Row, tokens: Sequence[Sequence[Row]] = ()) -> Row:
    """Return a problem with its sampled replies, whatever its writer calls them, and the spread of their rewards;
    `tokens` of each, where they were explained."""
    responses = row.get("responses")
    if not isinstance(responses, list):
        responses = [row]
    replies = [
        _reply_row(response, tokens[place] if place < len(tokens) else ())
        for place, response in enumerate(responses)
        if isinstance(response, dict)
    ]
    rewards = [reply["reward"] for reply in replies if reply["reward"] is not None]
    mean = fmean(rewards) if rewards else None
    deviation = stdev(rewards) if len(rewards) > 1 else None
    return {
        "problem": as_text(row.get("problem") or row.get("prompt") or row.get("input")),
        "gold": as_text(row.get("ground_truth") or row.get("expected_answer")),
        "benchmark": as_text(row.get("benchmark")),
        "rejected": row.get("rejected") is True,
        "mean": mean,
        "deviation": deviation,
        "without_spread": len(rewards) > 1 and len(set(rewards)) == 1,
        "responses": replies,
    }


def _reply_row(response: Row, tokens: Sequence[Row]) -> Row:
    text = as_text(
        response.get("text") or response.get("response") or response.get("completion") or response.get("output")
    )
    counted = finite_number(response.get("num_generated_tokens"))
    return {
        "text": text,
        "reward": finite_number(response.get("reward")),
        "answer": as_text(response.get("extracted_answer")),
        "finish": as_text(response.get("stop_reason") or response.get("finish_reason")),
        "components": _reward_components(response),
        "advantage": finite_number(response.get("advantage")),
        "why": as_text(response.get("why")),
        "turns": finite_number(response.get("turns")),
        "characters": len(text),
        "token_count": len(tokens) or counted,
        "tokens": list(tokens),
    }


def _object_rows(folders: Folders, path: Path) -> Iterator[Row]:
    """Yield the lines that are objects; others are passed over."""
    if not path.is_file():
        return
    with folders.open(path) as file:
        while line := file.readline(_LONGEST_LINE):
            try:
                yield _decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
