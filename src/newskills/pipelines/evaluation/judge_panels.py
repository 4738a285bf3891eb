# SPDX-License-Identifier: Apache-2.0
"""Panels of judges: `--judge_model=A,B,C`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError
from newskills.graders.judges.verdict import VerdictConfig
from newskills.pipelines.evaluation.judge_options import JudgeOptions
from newskills.pipelines.models import ROLE
from newskills.pipelines.notices import print_note
from newskills.run.planning.config import JUDGES
from newskills.solve.chat import MAIN
from newskills.solve.judges.panel import VerdictForm

PANEL = "panel"
FORMS: Mapping[str, VerdictForm] = {
    "judgement": "yes_or_no",
    "rubric": "yes_or_no",
    "verdict": "letter",
    "arena": "game",
    "rating": "mark",
}
"""Grader of judgements → what each text says."""
KINDS = ("llm", "math_judge", "ruled", "arena", "turns", "rubric")


def panel_names(options: JudgeOptions) -> list[str]:
    """Return the judges of a panel, without the model under test; empty where one judge is named.

    Raises ConfigError where a judge is named twice.
    """
    names = split_list([options.judge_model or ""])
    if len(names) < 2:
        return []
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"--judge_model names {twice} twice.", hint="Name each judge of a panel once.")
    others = [name for name in names if name not in options.model]
    if len(others) == len(names):
        return names
    if len(others) < 2:
        raise ConfigError(
            f"--judge_model: {', '.join(options.model)} would judge its own answers.",
            hint="Name two judges besides the model under test, or a single one.",
        )
    print_note(f"{', '.join(options.model)} does not judge its own answers: the panel is {', '.join(others)}")
    return others


def split_list(values: Sequence[str]) -> list[str]:
    """Split texts at their commas."""
    return [part.strip() for value in values for part in str(value).split(",") if part.strip()]


def panel_judge(judge: Judge, names: Sequence[str]) -> Judge:
    """Return the judge that asks all of `names`, in the order of their models' roles. Raises ConfigError where their
    verdicts cannot be combined."""
    if judge.kind not in KINDS or judge.grader not in FORMS:
        raise ConfigError(
            f"--judge_model: several judges cannot be combined here (kind {judge.kind}, grader {judge.grader}).",
            hint="Name one judge.",
        )
    roles = [MAIN, *(f"{ROLE}{number}" for number in range(1, len(names)))]
    form = FORMS[judge.grader]
    settings = {
        "solver": JUDGES[judge.kind],
        "config": judge.defaults.get("solver_config", {}),
        "names": dict(zip(roles, names, strict=True)),
        "form": form,
        "letters": judge.grader_config.get("verdicts", VerdictConfig().verdicts) if form == "letter" else {},
    }
    return replace(judge, kind=PANEL, defaults={**judge.defaults, "solver_config": settings})
