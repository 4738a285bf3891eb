# SPDX-License-Identifier: Apache-2.0
"""How far the judges of a panel agree, from the records that hold what each of them said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.records import Number, Row
from newskills.base.stats import bootstrap, krippendorff_alpha
from newskills.run.reporting.results import parts

ALPHA, SPLIT = "judge_alpha", "judge_split"
_MOST_DRAWN = 2_000_000
"""Ratings that all resamples draw together, so that large results take a second."""


class PanelAgreement(Struct, frozen=True, kw_only=True):
    """`alpha`: Krippendorff's, with its interval, where anything differs; `split`: samples with different verdicts, in
    percent of all that were judged."""

    judges: tuple[str, ...]
    alpha: Number | None
    split: float

    def sentence(self) -> str:
        """Return the agreement in words."""
        alpha = self.alpha
        agreement = "always agree"
        if alpha is not None:
            agreement = f"agree with Krippendorff's alpha {alpha.value:.2f} [{alpha.low:.2f}, {alpha.high:.2f}]"
        return f"judges {', '.join(self.judges)} {agreement}; they differ on {self.split:.1f} % of the samples."


class _Record(Struct):
    judge_panel: dict[str, dict[str, Any]] | None = None
    judge_split: bool | None = None
    judge_prefilled: bool = False
    outcome: str = ""


_decoder = msgspec.json.Decoder(_Record)


def panel_agreement(files: Sequence[Path]) -> PanelAgreement | None:
    """Return the agreement of the panel that judged these files; None where no panel has."""
    units: list[tuple[str | float, ...]] = []
    judges: dict[str, None] = {}
    judged = split = 0
    for file in files:
        for path in parts(file):
            with path.open("rb") as lines:
                for line in lines:
                    record = _decoded(line)
                    if record is None or record.judge_panel is None:
                        is_judged = (
                            record is not None and not record.judge_prefilled and record.outcome != "unscored"
                        )
                        if is_judged and not judges:
                            return None  # the first record about which a judge was asked says whether there is a panel
                        continue
                    judges.update(dict.fromkeys(record.judge_panel))
                    judged += 1
                    split += bool(record.judge_split)
                    units += _ratings(record.judge_panel)
    if not judged:
        return None
    return PanelAgreement(judges=tuple(judges), alpha=_alpha(units), split=100 * split / judged)


def _decoded(line: bytes) -> _Record | None:
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _ratings(panel: dict[str, dict[str, Any]]) -> list[tuple[str | float, ...]]:
    """Return, for each thing that was judged, the verdicts of all judges who gave one."""
    by_key: dict[str, list[str | float]] = {}
    for own in panel.values():
        for key, judgement in own.items():
            if isinstance(judgement, dict) and isinstance(judgement.get("verdict"), str | int | float):
                by_key.setdefault(key, []).append(judgement["verdict"])
    return [tuple(verdicts) for verdicts in by_key.values()]


def _alpha(units: Sequence[tuple[str | float, ...]]) -> Number | None:
    value = krippendorff_alpha(units)
    if math.isnan(value):
        return None

    def finite_alpha(drawn: Sequence[tuple[str | float, ...]]) -> float:
        alpha = krippendorff_alpha(drawn)
        if math.isnan(alpha):
            return 1.0
        return alpha

    resamples = min(1000, max(100, _MOST_DRAWN // len(units)))
    low, high = bootstrap(units, finite_alpha, resamples=resamples)
    return Number(value=value, low=low, high=high, n=len(units), method="bootstrap")


def with_agreement(modes: dict[str, Row], agreement: PanelAgreement) -> dict[str, Row]:
    """Return the modes of a report with the agreement of the panel in each."""
    about: Row = {SPLIT: agreement.split}
    if agreement.alpha is not None:
        about[ALPHA] = agreement.alpha.value
    return {mode: row | about for mode, row in modes.items()}
