# SPDX-License-Identifier: Apache-2.0
"""Curves of a training: what each step measured, under plain names with units, in the order in which people look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from newskills.base.records import Row
from newskills.view.files import finite_number

MOST_POINTS = 1_500
"""Of a curve; of a longer one, means of neighbours are shown."""
MOST_SERIES = 80
REWARD_PARTS, BY_KIND, OTHER = "Reward parts", "By benchmark and difficulty", "Other"
CHANGE_TITLE = "Change of the reward on held-out problems"
GROUPS = {
    "Held-out problems": ("eval_", "val", "held_out", "heldout"),
    "Reward": ("reward", "correct", "verdict", "accuracy", "score"),
    REWARD_PARTS: (),
    BY_KIND: (),
    CHANGE_TITLE: (),
    "Loss": ("loss", "nll", "perplexity", "policy_loss"),
    "Spread of groups": ("spread", "groups"),
    "Length": ("completion_tokens", "length", "cut_off", "response_length", "tokens_per"),
    "KL and entropy": ("kl", "entropy", "ratio", "clip"),
    "Signal of the gradient": ("signal", "gradient_"),
    "Optimizer": ("learning_rate", "lr", "grad"),
    OTHER: (),
}
"""Title of a plot, in the order of the page → beginnings, or parts, of names of metrics; `METRICS` goes before them."""
SMALL_GROUPS = (
    REWARD_PARTS,
    BY_KIND,
    CHANGE_TITLE,
    "KL and entropy",
    "Signal of the gradient",
    "Optimizer",
    OTHER,
)
"""Titles of what is drawn as small plots beside each other."""
_BY_PARTS = ("Loss", "Reward", "Signal of the gradient", "KL and entropy")
"""Titles whose parts are looked for first: `policy_loss` and `kl_loss` are losses."""


class MetricName(NamedTuple):
    """`complement`: the plot shows 1 − the metric."""

    title: str
    unit: str
    group: str
    complement: bool = False


_NATS = "nats per token"
METRICS = {
    "eval_correct": MetricName("held-out problems solved", "share", "Held-out problems"),
    "eval_reward": MetricName("reward on held-out problems", "", "Held-out problems"),
    "eval_change": MetricName("change", "", CHANGE_TITLE),
    "eval_change_low": MetricName("lower end of its 95 % interval", "", CHANGE_TITLE),
    "eval_change_high": MetricName("upper end of its 95 % interval", "", CHANGE_TITLE),
    "eval_p": MetricName("p", "", CHANGE_TITLE),
    "eval_unscored": MetricName("unscored on held-out problems", "samples", "Held-out problems"),
    "reward": MetricName("reward, mean", "", "Reward"),
    "correct": MetricName("correct samples", "share", "Reward"),
    "drawn_reward": MetricName("reward of all groups drawn, mean", "", "Reward"),
    "drawn_correct": MetricName("correct samples of all groups drawn", "share", "Reward"),
    "loss": MetricName("loss", "", "Loss"),
    "spread": MetricName("groups without spread", "share", "Spread of groups", complement=True),
    "groups_used": MetricName("groups with spread", "groups", "Spread of groups"),
    "groups_drawn": MetricName("groups drawn", "groups", "Spread of groups"),
    "groups_rejected": MetricName("groups replaced", "groups", "Spread of groups"),
    "completion_tokens": MetricName("length of a reply, mean", "tokens", "Length"),
    "cut_off": MetricName("truncated replies", "share", "Length"),
    "turns": MetricName("turns, mean", "", "Length"),
    "entropy": MetricName("entropy", _NATS, "KL and entropy"),
    "kl": MetricName("KL from the reference", "nats", "KL and entropy"),
    "kl_kept": MetricName("KL from the best weights so far", _NATS, "KL and entropy"),
    "sampler_kl": MetricName("KL between sampler and trainer", _NATS, "KL and entropy"),
    "ratio": MetricName("probability by the trainer / by the sampler, mean", "", "KL and entropy"),
    "clip_ratio/region_mean": MetricName("clipped", "share", "KL and entropy"),
    "clip_ratio/low_mean": MetricName("clipped below", "share", "KL and entropy"),
    "clip_ratio/high_mean": MetricName("clipped above", "share", "KL and entropy"),
    "cispo_clip_ratio": MetricName("clipped", "share", "KL and entropy"),
    "importance_cut": MetricName("importance weights above the cap", "share", "KL and entropy"),
    "signal": MetricName("signal of the gradient", "0–1", "Signal of the gradient"),
    "noise_scale": MetricName("noise scale", "groups", "Signal of the gradient"),
    "halves_cosine": MetricName("cosine of both halves of the gradient", "", "Signal of the gradient"),
    "gradient_square": MetricName("squared length of the true gradient", "", "Signal of the gradient"),
    "gradient_variance": MetricName("variance of the gradient of a group", "", "Signal of the gradient"),
    "learning_rate": MetricName("learning rate", "", "Optimizer"),
    "grad_norm": MetricName("norm of the gradient", "", "Optimizer"),
    "seconds": MetricName("time of a step", "s", OTHER),
    "tokens": MetricName("tokens learnt from", "tokens", OTHER),
    "unscored": MetricName("unscored samples", "samples", OTHER),
    "lost": MetricName("lost rollouts", "rollouts", OTHER),
}
"""What `ns sft`, `ns grpo` and the other trainings write, in the order in which it is of use."""
_METRIC_PLACES = {name: place for place, name in enumerate(METRICS)}


def curve_series(rows: Sequence[Row]) -> list[Row]:
    """Name, title, unit, group and points of everything that is a number, what is known first."""
    points_by_name: dict[str, list[list[float]]] = {}
    for place, row in enumerate(rows):
        step = finite_number(row.get("step"))
        for name, value in _flatten_row(row):
            if name != "step" and (figure := finite_number(value)) is not None:
                points_by_name.setdefault(name, []).append([place if step is None else step, figure])
    curves = []
    for name in sorted(
        list(points_by_name)[:MOST_SERIES], key=lambda name: _METRIC_PLACES.get(name, len(_METRIC_PLACES))
    ):
        metric, points = metric_name(name), _thin_points(points_by_name[name])
        if metric.complement:
            points = [[step, 1 - value] for step, value in points]
        curves.append(
            {"name": name, "title": metric.title, "unit": metric.unit, "group": metric.group, "points": points}
        )
    return curves


def metric_name(name: str) -> MetricName:
    """Return how a metric is called on the page, and which plot it belongs to."""
    if name in METRICS:
        return METRICS[name]
    head, _, last = name.partition("/")
    field, is_kind, value = last.partition("=")
    if head in ("reward", "correct") and is_kind:
        what = METRICS[head].title
        on = value if field == "benchmark" else f"{field} {value}"
        return MetricName(f"{what}: {on}", METRICS[head].unit, BY_KIND)
    if head == "reward" and last:
        return MetricName(last.replace("_", " "), "", REWARD_PARTS)
    return MetricName(name.replace("_", " "), "", _group_by_parts(name.lower()))


def _group_by_parts(low: str) -> str:
    if low.startswith(GROUPS["Held-out problems"]) or low.rpartition("/")[2].startswith(
        GROUPS["Held-out problems"]
    ):
        return "Held-out problems"
    order = [*_BY_PARTS, *(title for title in GROUPS if title not in _BY_PARTS)]
    return next((title for title in order if any(part in low for part in GROUPS[title])), OTHER)


def component_rows(steps: Sequence[tuple[float, Sequence[Mapping[str, float]]]]) -> list[Row]:
    """Return the mean of each component of the rewards by step as metrics, from (step, components of each sample);
    empty where a reward has one component."""
    values: dict[float, dict[str, list[float]]] = {}
    for step, samples in steps:
        for components in samples:
            for name, value in components.items():
                values.setdefault(step, {}).setdefault(name, []).append(value)
    if len({name for parts in values.values() for name in parts}) < 2:
        return []
    return [
        {"step": step} | {f"reward/{name}": sum(parts) / len(parts) for name, parts in values[step].items()}
        for step in sorted(values)
    ]


def _flatten_row(row: Row, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict) and not prefix:
            yield from _flatten_row(value, f"{name}/")
        else:
            yield f"{prefix}{name}", value


def _thin_points(points: list[list[float]]) -> list[list[float]]:
    if len(points) <= MOST_POINTS:
        return points
    size = -(-len(points) // MOST_POINTS)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [[group[-1][0], sum(value for _, value in group) / len(group)] for group in groups]
