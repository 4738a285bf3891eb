# SPDX-License-Identifier: Apache-2.0
"""What `--until` means for an evaluation, and the run that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError
from newskills.benchmarks.data import read_provenance
from newskills.graders import GRADERS
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.run.evaluate import EvaluationSpec, stop_plans
from newskills.run.planning.plan import BenchmarkRun
from newskills.run.planning.until import UntilRule, parse_until
from newskills.view.comparison.records import BenchmarkRecords, read_run


def with_until(spec: EvaluationSpec, options: EvalOptions, *, elsewhere: bool) -> EvaluationSpec:
    """Add the rule of `--until` to `spec`. Raises ConfigError (no rule, not for this evaluation), DataError (the
    other run)."""
    if options.until is None:
        return spec
    rule = parse_until(options.until)
    if elsewhere:
        raise ConfigError(
            "--until works on this machine only: on a cluster, jobs do not know of each other's answers.",
            hint="Run it with --cluster=none.",
        )
    if spec.sequential:
        raise ConfigError("--until asks all seeds of a problem together; leave out --single_node_mode=sequential.")
    baselines = {}
    if rule.against:
        baselines = _read_baselines(rule, spec.runs)
    return replace(spec, until=stop_plans(spec, rule, baselines))


def _read_baselines(rule: UntilRule, runs: Sequence[BenchmarkRun]) -> dict[str, Mapping[str, float]]:
    """Return benchmark → problem → mean score over its samples in the other run (0-1)."""
    other = read_run(Path(rule.against), rule.against, [run.name for run in runs])
    baselines: dict[str, Mapping[str, float]] = {}
    for run in runs:
        records = other.benchmarks.get(run.name)
        if records is None:
            why = other.left_out.get(run.name, f"It has no {run.name}.")
            raise DataError(f"--until '{rule.text}': {rule.against} cannot be compared with: {why}")
        _check_same_data(rule, run, records)
        baselines[run.name] = {
            identity: sum(scores) / len(scores)
            for identity, samples in records.samples.items()
            if (scores := [sample.score for sample in samples if sample is not None and sample.score is not None])
        }
    return baselines


def _check_same_data(rule: UntilRule, run: BenchmarkRun, records: BenchmarkRecords) -> None:
    """Check that ids mean the same problems, which holds in the same data only, and that both have the same
    grader.

    Raises DataError.
    """
    theirs, here = records.facts.get("data"), read_provenance(run.input_file)
    if isinstance(theirs, dict) and here is not None and theirs.get("sha256") not in (None, here.sha256):
        raise DataError(
            f"--until '{rule.text}': the data of {run.name} is not that of {rule.against}.",
            hint="Evaluate both on the same data.",
        )
    grader = GRADERS.get(run.benchmark.grader)
    name, version = getattr(grader, "name", None), getattr(grader, "version", None)
    if name is not None and any(
        graded.partition("@")[0] == name and graded != f"{name}@{version}" for graded in records.graders
    ):
        raise DataError(
            f"--until '{rule.text}': {rule.against} was graded by {', '.join(sorted(records.graders))}, and this run "
            f"is graded by {name}@{version}.",
            hint=f"For new verdicts: ns regrade {rule.against}",
        )
