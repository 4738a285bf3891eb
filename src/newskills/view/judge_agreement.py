# SPDX-License-Identifier: Apache-2.0
"""How far judges agree with people, where they are biased, and what the score is once their errors are taken out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.judgement import PANEL_FIELD as JUDGES_OF_PANEL
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Number, Row
from newskills.base.stats import Z95, wilson_interval
from newskills.base.terminal import counted
from newskills.run.records.paths import OutputPaths
from newskills.run.records.state import load_state
from newskills.run.reporting.results import BenchmarkResults, list_results
from newskills.view.comparison.records import read_whole_rows
from newskills.view.labels import LabelledSample, kappa_of, share_of

YES = frozenset({"yes", "true", "correct", "right", "1"})
NO = frozenset({"no", "false", "incorrect", "wrong", "0"})
PANEL = "panel"
_MIN_SAMPLES = 10
"""Labelled samples on each side of a comparison of biases."""


class JudgeAgreement(Struct, frozen=True, kw_only=True):
    """One judge on one benchmark beside labels of people. Shares and differences are in percent, with 95 % intervals.

    labelled     samples with a label and a verdict
    unjudged     labelled samples without a verdict
    accuracy, sensitivity, specificity   of all, of those that people call correct, of those that they call wrong
    kappa        Cohen's kappa, -1 to 1
    length_bias  how much more the judge favours the longer half of replies than the shorter half, in points
    own_bias     the same for its own answers and those of other models, where results of both are labelled
    raw          what the judge calls correct of all samples, as in the table
    rogan_gladen that share with the judge's errors taken out (Rogan and Gladen, Am. J. Epidemiol. 107, 1978)
    ppi          the same by prediction-powered inference (Angelopoulos et al., Science 382, 2023)
    """

    benchmark: str
    judge: str
    labelled: int
    unjudged: int
    accuracy: Number
    sensitivity: Number | None
    specificity: Number | None
    kappa: Number
    length_bias: Number | None
    own_bias: Number | None
    raw: Number
    rogan_gladen: Number | None
    ppi: Number


class _Judged(NamedTuple):
    """A sample with a judge's verdict (None: it gave none) and people's label (None: nobody has labelled it)."""

    problem: str
    verdict: bool | None
    label: bool | None
    length: int
    is_own: bool


def judge_agreements(
    folders: Sequence[Path], labelled: Sequence[LabelledSample]
) -> tuple[list[JudgeAgreement], list[str]]:
    """Compare each judge of each benchmark with labels; notes say which could not be.

    Raises DataError: a label is neither yes nor no, two labels of a sample differ, or no label belongs to a judged
    sample.
    """
    labels = [(sample, _label_verdict(sample)) for sample in labelled]
    replies: dict[LabelledSample, set[str]] = {}
    judged: dict[tuple[str, str], list[_Judged]] = {}
    for folder in folders:
        for item in list_results(folder):
            for judge, sample in _judged_samples(item, labels, replies):
                judged.setdefault((item.benchmark, judge), []).append(sample)
    agreements, notes = [], []
    for (benchmark, judge), samples in judged.items():
        if any(sample.label is not None and sample.verdict is not None for sample in samples):
            agreements.append(_judge_agreement(benchmark, judge, samples))
        else:
            notes.append(f"{benchmark}: no labelled sample has a verdict of {judge}.")
    several = [sample for sample, texts in replies.items() if len(texts) > 1]
    if several:
        notes.append(
            f"{counted(len(several), 'label')} for different replies, the first for those to {several[0].id}: name "
            "benchmark, model and seed in each label."
        )
    if not agreements:
        raise DataError(
            "No label belongs to a sample that a judge has decided on.",
            hint="Labels name samples by their id: ns samples DIR shows it.",
        )
    return agreements, notes


def _label_verdict(sample: LabelledSample) -> bool:
    text = sample.label.strip().lower()
    if text not in YES | NO:
        raise DataError(
            f"The label of {sample.id} is '{sample.label}'.", hint="Label samples yes (correct) or no (wrong)."
        )
    return text in YES


def _judged_samples(
    item: BenchmarkResults, labels: Sequence[tuple[LabelledSample, bool]], replies: dict[LabelledSample, set[str]]
) -> Iterator[tuple[str, _Judged]]:
    """Yield each sample of a benchmark once for each judge that was asked about it. `replies`: label → the different
    replies that it stands for."""
    by_id: dict[str, list[tuple[LabelledSample, bool]]] = {}
    for sample, label in labels:
        if sample.benchmark in (None, item.benchmark):
            by_id.setdefault(sample.id, []).append((sample, label))
    for file, seed in zip(item.files, item.seeds, strict=True):
        state = load_state(OutputPaths(file).state)
        model = ""
        if state is not None:
            model = str(state.settings.get("server.model"))
        for row in read_whole_rows(item, file):
            matching = [
                (sample, label)
                for sample, label in by_id.get(str(row.get("id")), [])
                if sample.seed in (None, seed) and sample.model in (None, model)
            ]
            if len({label for _, label in matching}) > 1:
                raise DataError(
                    f"{row.get('id')} is labelled yes and no.",
                    hint="Name benchmark, model and seed in each label, or decide.",
                )
            for sample, _ in matching:
                replies.setdefault(sample, set()).add(str(row.get("generation")))
            wanted = next((label for _, label in matching), None)
            for judge, verdict in _judge_verdicts(row).items():
                length = len(str(row.get("generation") or ""))
                yield judge, _Judged(str(row.get("id")), verdict, wanted, length, judge == model)


def _judge_verdicts(row: Row) -> dict[str, bool | None]:
    """Return judge → verdict; of a panel, all its judges and the panel itself. Empty for a row that none was asked
    about."""
    if "judge_correct" not in row:
        return {}
    verdict = row["judge_correct"]
    if not isinstance(verdict, bool):
        verdict = None
    members = row.get(JUDGES_OF_PANEL)
    if not isinstance(members, dict):
        return {str(row.get("judge_model") or "judge"): verdict}
    verdicts: dict[str, bool | None] = {PANEL: verdict}
    for name, own in members.items():
        member_verdict = object_or_empty(object_or_empty(own).get("judgement")).get("verdict")
        if name == PANEL:
            name = f"the judge {name}"
        verdicts[name] = {"Yes": True, "No": False}.get(str(member_verdict))
    return verdicts


def _judge_agreement(benchmark: str, judge: str, samples: Sequence[_Judged]) -> JudgeAgreement:
    decided = [sample for sample in samples if sample.verdict is not None]
    both = [sample for sample in decided if sample.label is not None]
    by_problem: dict[str, list[tuple[str, str]]] = {}
    for sample in both:
        by_problem.setdefault(sample.problem, []).append((str(sample.label), str(sample.verdict)))
    kappa = kappa_of(list(by_problem.values()))
    sensitivity = _hit_share([sample.verdict is True for sample in both if sample.label])
    specificity = _hit_share([sample.verdict is False for sample in both if not sample.label])
    raw = _hit_share([sample.verdict is True for sample in decided])
    accuracy = _hit_share([sample.verdict == sample.label for sample in both])
    if raw is None or accuracy is None or kappa is None:
        raise DataError(f"{benchmark}: {judge} has no verdict.")
    middle = median(sample.length for sample in both)
    is_top_heavy = not any(sample.length > middle for sample in both)
    longer = [sample for sample in both if sample.length > middle or (is_top_heavy and sample.length == middle)]
    shorter = [
        sample for sample in both if sample.length < middle or (not is_top_heavy and sample.length == middle)
    ]
    return JudgeAgreement(
        benchmark=benchmark,
        judge=judge,
        labelled=len(both),
        unjudged=sum(sample.label is not None and sample.verdict is None for sample in samples),
        accuracy=accuracy,
        sensitivity=sensitivity,
        specificity=specificity,
        kappa=kappa,
        length_bias=_bias_difference(longer, shorter),
        own_bias=_bias_difference(
            [sample for sample in both if sample.is_own], [sample for sample in both if not sample.is_own]
        ),
        raw=raw,
        rogan_gladen=_rogan_gladen(raw, sensitivity, specificity),
        ppi=_prediction_powered(decided),
    )


def _hit_share(hits: Sequence[bool]) -> Number | None:
    return share_of(sum(hits), len(hits))


def _verdict_errors(samples: Sequence[_Judged]) -> list[float]:
    """Return 1 where a wrong answer was accepted, -1 where a correct one was not, else 0."""
    return [float(bool(sample.verdict)) - float(bool(sample.label)) for sample in samples]


def _bias_difference(first: Sequence[_Judged], second: Sequence[_Judged]) -> Number | None:
    """Return the difference of mean errors in points; None where a side has too few samples."""
    if min(len(first), len(second)) < _MIN_SAMPLES:
        return None
    first_errors, second_errors = _verdict_errors(first), _verdict_errors(second)
    value = fmean(first_errors) - fmean(second_errors)
    half = Z95 * math.sqrt(
        _score_variance(first_errors) / len(first) + _score_variance(second_errors) / len(second)
    )
    return Number(
        value=100 * value,
        low=100 * (value - half),
        high=100 * (value + half),
        n=len(first) + len(second),
        method="normal",
    )


def _rogan_gladen(raw: Number, sensitivity: Number | None, specificity: Number | None) -> Number | None:
    """Return the corrected share, with the interval of the delta method; None where the judge is no better than
    chance."""
    if sensitivity is None or specificity is None:
        return None
    share, true_yes, true_no = raw.value / 100, sensitivity.value / 100, specificity.value / 100
    gain = true_yes + true_no - 1
    if gain <= 0:
        return None
    value = min(1.0, max(0.0, (share + true_no - 1) / gain))
    variance = (
        share * (1 - share) / raw.n
        + value**2 * true_yes * (1 - true_yes) / sensitivity.n
        + (1 - value) ** 2 * true_no * (1 - true_no) / specificity.n
    )
    half = Z95 * math.sqrt(variance) / gain
    return Number(
        value=100 * value,
        low=100 * max(0.0, value - half),
        high=100 * min(1.0, value + half),
        n=raw.n,
        method="delta",
    )


def _prediction_powered(decided: Sequence[_Judged]) -> Number:
    """Return the mean verdict on samples without a label less the mean error on those with one; where all have labels,
    the labels' mean."""
    both = [sample for sample in decided if sample.label is not None]
    rest = [float(bool(sample.verdict)) for sample in decided if sample.label is None]
    if not rest:
        share = _hit_share([bool(sample.label) for sample in both])
        assert share is not None  # somebody has labelled a sample
        return share
    errors = _verdict_errors(both)
    value = min(1.0, max(0.0, fmean(rest) - fmean(errors)))
    half = Z95 * math.sqrt(_score_variance(rest) / len(rest) + _score_variance(errors) / len(errors))
    return Number(
        value=100 * value,
        low=100 * max(0.0, value - half),
        high=100 * min(1.0, value + half),
        n=len(decided),
        method="normal",
    )


def _score_variance(values: Sequence[float]) -> float:
    """Return the variance; of values that are all equal, one whose interval is as wide as that of a share of 0."""
    if len(set(values)) < 2:
        return len(values) * (wilson_interval(0.0, len(values))[1] / Z95) ** 2
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
