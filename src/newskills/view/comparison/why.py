# SPDX-License-Identifier: Apache-2.0
"""Why two scores differ: the ingredients that do, and how many points each is worth where records can tell."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, NewskillsError, UserError
from newskills.base.protocols import ExecutingGrader, Grader
from newskills.base.records import Row
from newskills.base.terminal import counted
from newskills.graders import GRADERS, is_executing, make_grader
from newskills.prompts.renderer import load_prompt
from newskills.run.reporting.results import BenchmarkResults
from newskills.view.comparison.ingredients import Difference, Kind, run_differences
from newskills.view.comparison.paired_runs import run_names
from newskills.view.comparison.records import (
    BenchmarkRecords,
    GraderChoice,
    SampleScore,
    read_benchmark,
    read_run,
)

_LABEL = re.compile(r"(?P<name>[^@\s]+)@(?P<version>\S+)(?: (?P<config>\{.*\}))?", re.DOTALL)


class ExplanationStep(Struct, frozen=True, kw_only=True):
    """Both scores in percent after one more thing was made equal.

    worth     points that this took off the difference
    common    whether both sides have the same problems
    left_out  problems of the step before that this one does not count, on the side that loses more
    """

    what: str
    before: float
    after: float
    problems: int
    worth: float
    common: bool = True
    left_out: int = 0

    @property
    def difference(self) -> float:
        return self.after - self.before


class Explanation(Struct, frozen=True, kw_only=True):
    """One benchmark. `prompt_diff`: lines of a unified diff; `unknown`: what the records cannot tell, in sentences."""

    benchmark: str
    before: str
    after: str
    differs: tuple[Difference, ...]
    prompt_diff: tuple[str, ...]
    steps: tuple[ExplanationStep, ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...] = ()


def explain_run_difference(first: Path, second: Path, wanted: Sequence[str] = ()) -> list[Explanation]:
    """Explain the differences in the benchmarks that both runs have. Raises DataError where there is none."""
    names = run_names([first, second])
    before, after = read_run(first, names[0], wanted), read_run(second, names[1], wanted)
    common = [name for name in before.benchmarks if name in after.benchmarks]
    if not common:
        left = [f"{run.name} has {', '.join(run.benchmarks) or 'nothing'}" for run in (before, after)]
        reasons = " ".join(f"{name}: {why}" for run in (before, after) for name, why in run.left_out.items())
        raise DataError(f"The runs have no benchmark in common: {'; '.join(left)}. {reasons}".rstrip())
    notes = tuple(dict.fromkeys([*before.notes, *after.notes]))
    first_explanation, *others = [
        _explain_benchmark(before.benchmarks[name], after.benchmarks[name], names) for name in common
    ]
    return [msgspec.structs.replace(first_explanation, notes=notes), *others]


def _explain_benchmark(before: BenchmarkRecords, after: BenchmarkRecords, names: Sequence[str]) -> Explanation:
    differing = run_differences(before, after)
    kinds = {difference.kind for difference in differing}
    unknown: list[str] = []
    steps = _explanation_steps(before, after, differing, unknown)
    if mixed := [kind for kind in ("prompt", "sampling", "model", "engine") if kind in kinds]:
        alone = ""
        if len(mixed) > 1:
            alone = " Only a run that changes one of them alone tells them apart."
        unknown.append(f"What is left comes from the {' and the '.join(mixed)}.{alone}")
    prompt_diff: tuple[str, ...] = ()
    if "prompt" in kinds:
        prompt_diff = tuple(_prompt_diff(before.facts, after.facts))
    return Explanation(
        benchmark=before.benchmark,
        before=names[0],
        after=names[1],
        differs=tuple(differing),
        prompt_diff=prompt_diff,
        steps=tuple(steps),
        unknown=tuple(unknown),
    )


def _explanation_steps(
    before: BenchmarkRecords, after: BenchmarkRecords, differing: Sequence[Difference], unknown: list[str]
) -> list[ExplanationStep]:
    """Return the steps from both scores as they are to those of equal rows, an equal grader, and answers that were
    not truncated."""
    steps = [_explanation_step("scores as they are", before, after, None, common=False)]
    steps.append(_explanation_step("on the problems that both have", before, after, steps[-1]))
    if any(difference.kind == "grader" for difference in differing):
        graded, why = _same_grader(before, after)
        if graded is None:
            unknown.append(f"The effect of the grader is unknown: {why}")
        else:
            before, after, label = graded
            step = _explanation_step(f"both graded by {label}", before, after, steps[-1])
            if step.problems:
                steps.append(step)
            else:
                unknown.append(f"The effect of the grader is unknown: {label} finds nothing to grade in records.")
    if _has_truncated(before) or _has_truncated(after):
        steps.append(_explanation_step("without truncated problems", before, after, steps[-1], cut=False))
        unknown.append(
            "The effect of a larger token limit is unknown: the last step compares the "
            f"{steps[-1].problems:,} problems that were not truncated in either run, and leaves out "
            f"{counted(steps[-1].left_out, 'other')}, where the runs may differ for more reasons than that."
        )
    return steps


def _explanation_step(
    what: str,
    before: BenchmarkRecords,
    after: BenchmarkRecords,
    last: ExplanationStep | None,
    *,
    common: bool = True,
    cut: bool = True,
) -> ExplanationStep:
    """Return the step with the scores of both sides. `common`: only problems with a score on both sides; not `cut`:
    only those without a truncated sample."""
    kept = [dict(_problem_means(side, cut=cut)) for side in (before, after)]
    ids = [
        [identity for identity in own if not common or identity in other]
        for own, other in zip(kept, reversed(kept), strict=True)
    ]
    values = [
        100 * sum(own[identity] for identity in chosen) / max(len(chosen), 1)
        for own, chosen in zip(kept, ids, strict=True)
    ]
    worth, had = 0.0, max(map(len, kept))
    if last is not None:
        worth = last.difference - (values[1] - values[0])
        if last.common:
            had = last.problems
    problems = min(map(len, ids))
    left_out = had - problems if common else 0
    return ExplanationStep(
        what=what,
        before=values[0],
        after=values[1],
        problems=problems,
        worth=worth,
        common=common,
        left_out=left_out,
    )


def _problem_means(records: BenchmarkRecords, *, cut: bool) -> Iterator[tuple[str, float]]:
    """Yield (problem, mean of its scored samples)."""
    for identity, samples in records.samples.items():
        scores = [sample.score for sample in samples if sample is not None and sample.score is not None]
        if scores and (cut or not any(map(_is_cut, samples))):
            yield identity, sum(scores) / len(scores)


def _is_cut(sample: SampleScore | None) -> bool:
    return sample is not None and sample.cause == "truncation"


def _has_truncated(records: BenchmarkRecords) -> bool:
    return any(_is_cut(sample) for samples in records.samples.values() for sample in samples)


def _same_grader(
    before: BenchmarkRecords, after: BenchmarkRecords
) -> tuple[tuple[BenchmarkRecords, BenchmarkRecords, str] | None, str]:
    """Return both sides as the grader of the second judges them today, and its label; or why that is
    impossible."""
    choice = recorded_grader(after) or recorded_grader(before)
    if choice is None:
        return None, "no grader of this installation is named in the records."
    try:
        grader = make_grader(choice.name, choice.config)
        if is_executing(grader):
            return None, f"the grader '{choice.name}' runs code or asks models; ns regrade does that."
        regraded = [
            read_benchmark(BenchmarkResults(side.benchmark, side.folder, side.files), choice)[0]
            for side in (before, after)
        ]
    except NewskillsError as error:
        return None, error.message
    return (regraded[0], regraded[1], label_of(grader)), ""


def label_of(grader: Grader | ExecutingGrader) -> str:
    """Return name and version of the grader, as records have it."""
    return f"{grader.name}@{grader.version}"


def recorded_grader(records: BenchmarkRecords) -> GraderChoice | None:
    """Return the grader that judged the records, with its settings where they are recorded; None where there is no such
    grader here."""
    described = str(records.facts.get("grader") or "")
    states = [state.grader for state in records.states if state is not None]
    for label in (described, *states, *sorted(records.graders)):
        match = _LABEL.fullmatch(label)
        if match is not None and match["name"] in GRADERS:
            config: Row = msgspec.json.decode(match["config"] or "{}")
            return GraderChoice(match["name"], config)
    return None


def _prompt_diff(before: Row, after: Row) -> Iterator[str]:
    """Yield the lines of the difference; none where one of the texts is not known any more."""
    texts = [prompt_text(facts) for facts in (before, after)]
    if not all(texts):
        return
    lines = [text.splitlines() for text in texts]
    names = [str(facts.get("prompt")) for facts in (before, after)]
    yield from difflib.unified_diff(lines[0], lines[1], names[0], names[1], n=2, lineterm="")


def prompt_text(facts: Row) -> str:
    """Return the prompt as benchmark.json has it, else that of this name here, if it is still the same; else an empty
    text."""
    if text := facts.get("prompt_text"):
        return str(text)
    try:
        prompt = load_prompt(str(facts.get("prompt")))
    except UserError:
        return ""
    if prompt.hash == facts.get("prompt_hash"):
        return prompt.template
    return ""


STEP_ORDER: tuple[Kind, ...] = ("data", "prompt", "grader", "sampling", "model", "engine", "version")
