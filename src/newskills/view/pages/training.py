# SPDX-License-Identifier: Apache-2.0
"""A training as it went: curves of what each step measured, settings, checkpoints, and samples by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.records import Row
from newskills.train.loops.folder import CHECKPOINTS, EXAMPLES, METRICS, SAMPLES, SETTINGS, explained_file
from newskills.view.files import number, read_json
from newskills.view.folders import Folders
from newskills.view.library import Library
from newskills.view.records import as_text, shortened

MOST_POINTS = 1_500
"""Of a curve; of a longer one, means of neighbours are shown."""
MOST_SERIES = 80
GROUPS = {
    "Loss": ("loss", "nll", "perplexity", "policy_loss"),
    "Reward": ("reward", "correct", "verdict", "accuracy", "score"),
    "Held-out problems": ("eval_", "val", "held_out", "heldout"),
    "KL and entropy": ("kl", "entropy", "ratio", "clip"),
    "Signal of the gradient": ("signal", "halves_cosine", "noise_scale", "gradient_", "spread", "groups"),
    "Length": ("completion_tokens", "length", "cut_off", "response_length", "tokens_per"),
    "Learning rate": ("learning_rate", "lr"),
    "Gradient": ("grad",),
}
"""Title of a plot → beginnings, or parts, of the names of what it shows; the first that fits counts."""
OTHER = "Other"
ORDER = ("Held-out problems", "Reward", "Loss")
"""Plots that come first: they answer whether the model learns."""
_decoder = msgspec.json.Decoder(dict[str, Any])
_LONGEST_LINE = 32 << 20


def training_page(library: Library, names: list[str]) -> Row:
    """Return several trainings to be laid over each other. Raises UnknownNameError."""
    return {
        "trainings": [_training(library, name) for name in names],
        "groups": [*ORDER, *(group for group in GROUPS if group not in ORDER), OTHER],
    }


def rollouts(library: Library, name: str, step: int) -> list[Row]:
    """Return samples that were taken at a step, at most 50. Raises UnknownNameError."""
    folder = library.training(name).folder
    explained = _explained(library.folders, explained_file(folder, step))
    samples: list[Row] = []
    for row in _rows(library.folders, folder / SAMPLES):
        if row.get("step") == step:
            tokens = explained[len(samples)] if len(samples) < len(explained) else []
            samples.append(shortened(_rollout(row, tokens), 20_000))
            if len(samples) >= 50:
                break
    return samples


def _training(library: Library, name: str) -> Row:
    folder = library.training(name).folder
    rows = list(_rows(library.folders, folder / METRICS))
    steps = sorted(
        {step for row in _rows(library.folders, folder / SAMPLES) if isinstance(step := row.get("step"), int)}
    )
    settings = read_json(library.folders, folder / SETTINGS) or read_json(library.folders, folder / "config.json")
    return {
        "id": name,
        "folder": str(folder),
        "series": series(rows),
        "settings": shortened(settings, 2_000),
        "checkpoints": [
            {"step": row.get("step"), "name": as_text(row.get("name")), "final": bool(row.get("final"))}
            for row in _rows(library.folders, folder / CHECKPOINTS)
        ],
        "sample_steps": steps,
        "explained_steps": [step for step in steps if explained_file(folder, step).is_file()],
        "examples": [shortened(row, 20_000) for row in _rows(library.folders, folder / EXAMPLES)],
        "last_step": max((step for row in rows if (step := number(row.get("step"))) is not None), default=None),
    }


def series(rows: list[Row]) -> list[Row]:
    """Name, group and points of everything that is a number, in the order of its first appearance."""
    points_by_name: dict[str, list[list[float]]] = {}
    for place, row in enumerate(rows):
        step = number(row.get("step"))
        for name, value in _flat(row):
            if name != "step" and (figure := number(value)) is not None:
                points_by_name.setdefault(name, []).append([place if step is None else step, figure])
    return [
        {"name": name, "group": group_of(name), "points": _thinned(points)}
        for name, points in list(points_by_name.items())[:MOST_SERIES]
    ]


def group_of(name: str) -> str:
    """Return the title of the plot that a value belongs to."""
    low = name.lower().rpartition("/")[2]
    if low.startswith(GROUPS["Held-out problems"]):
        return "Held-out problems"
    return next((title for title, parts in GROUPS.items() if any(part in low for part in parts)), OTHER)


def _flat(row: Row, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict) and not prefix:
            yield from _flat(value, f"{name}/")
        else:
            yield f"{prefix}{name}", value


def _thinned(points: list[list[float]]) -> list[list[float]]:
    if len(points) <= MOST_POINTS:
        return points
    size = -(-len(points) // MOST_POINTS)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [[group[-1][0], sum(value for _, value in group) / len(group)] for group in groups]


def _explained(folders: Folders, path: Path) -> list[list[list[Row]]]:
    """Return the tokens of each response of each group of a step that was explained, with the logarithms of their
    chances before and after the step; none where it was not."""
    groups = read_json(folders, path).get("groups") if path.is_file() else None
    return [
        [_tokens(response) for response in group.get("responses") or ()]
        for group in (groups if isinstance(groups, list) else ())
        if isinstance(group, dict)
    ]


def _tokens(response: Row) -> list[Row]:
    return [
        {"text": as_text(token[0]), "before": number(token[1]), "after": number(token[2])}
        for token in response.get("tokens") or ()
        if isinstance(token, list) and len(token) == 3
    ]


def _rollout(row: Row, tokens: Sequence[Sequence[Row]] = ()) -> Row:
    """Return a problem with its sampled replies, whatever its writer calls them; `tokens` of each, where they were
    explained."""
    responses = row.get("responses")
    if not isinstance(responses, list):
        responses = [row]
    return {
        "problem": as_text(row.get("problem") or row.get("prompt") or row.get("input")),
        "gold": as_text(row.get("ground_truth") or row.get("expected_answer")),
        "responses": [
            {
                "text": as_text(
                    response.get("text")
                    or response.get("response")
                    or response.get("completion")
                    or response.get("output")
                ),
                "reward": number(response.get("reward")),
                "answer": as_text(response.get("extracted_answer")),
                "finish": as_text(response.get("stop_reason") or response.get("finish_reason")),
                "components": response.get("components") or {},
                "advantage": number(response.get("advantage")),
                "tokens": list(tokens[place]) if place < len(tokens) else [],
            }
            for place, response in enumerate(responses)
            if isinstance(response, dict)
        ],
    }


def _rows(folders: Folders, path: Path) -> Iterator[Row]:
    """Yield the lines that are objects; others are passed over."""
    if not path.is_file():
        return
    with folders.open(path) as file:
        while line := file.readline(_LONGEST_LINE):
            try:
                yield _decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
