# SPDX-License-Identifier: Apache-2.0
"""What `ns judge_agreement DIR --labels FILE` does: judges beside labels of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from newskills.base.tables import print_table, print_text
from newskills.config.command_line import Parsed
from newskills.pipelines.json_output import print_json
from newskills.pipelines.options import doc

if TYPE_CHECKING:
    from newskills.base.records import Number
    from newskills.view.judge_agreement import JudgeAgreement


class JudgeAgreementOptions(Struct, frozen=True, kw_only=True):
    results_dirs: Annotated[
        list[str], doc("folders of judged results, also of several models", {"positional": True})
    ]
    labels: Annotated[
        str, doc('JSON Lines of labels: {"id": …, "label": "yes" or "no"}; also benchmark, model, seed')
    ]
    json: Annotated[bool, doc("print everything as JSON")] = False


def run(parsed: Parsed[JudgeAgreementOptions]) -> int:
    agreements = measure_judge_agreement(parsed)
    if parsed.options.json:
        print_json(agreements)
        return 0
    for agreement in agreements:
        print_text(f"{agreement.benchmark}, judged by {agreement.judge}: {agreement.labelled} labelled samples")
        print_table(_agreement_rows(agreement), ("", "value", "95 % interval"))
        if agreement.unjudged:
            print_text(f"{agreement.unjudged} labelled samples have no verdict.")
        print_text("")
    return 0


def measure_judge_agreement(parsed: Parsed[JudgeAgreementOptions]) -> list[JudgeAgreement]:
    """Return, for Python, the agreement of each judge on each benchmark."""
    from newskills.pipelines.notices import print_note
    from newskills.view.judge_agreement import judge_agreements
    from newskills.view.labels import read_labelled

    options = parsed.options
    agreements, notes = judge_agreements(
        [Path(name) for name in options.results_dirs], read_labelled(Path(options.labels))
    )
    for note in notes:
        print_note(note)
    return agreements


def _agreement_rows(agreement: JudgeAgreement) -> list[tuple[str, str, str]]:
    named: list[tuple[str, Number | None, str]] = [
        ("accuracy", agreement.accuracy, " %"),
        ("correct answers accepted", agreement.sensitivity, " %"),
        ("wrong answers rejected", agreement.specificity, " %"),
        ("Cohen's kappa", agreement.kappa, ""),
        ("favours longer replies by", agreement.length_bias, " points"),
        ("favours its own answers by", agreement.own_bias, " points"),
        ("raw score", agreement.raw, " %"),
        ("corrected (Rogan-Gladen)", agreement.rogan_gladen, " %"),
        ("corrected (prediction-powered)", agreement.ppi, " %"),
    ]
    return [
        (
            name,
            _format_value(number.value, unit),
            f"[{_format_value(number.low, '')}, {_format_value(number.high, '')}]",
        )
        for name, number, unit in named
        if number is not None
    ]


def _format_value(value: float, unit: str) -> str:
    if unit or abs(value) > 1:
        return f"{value:.1f}{unit}"
    return f"{value:.2f}"
