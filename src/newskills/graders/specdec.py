# SPDX-License-Identifier: Apache-2.0
"""Drafted tokens that a model accepted in speculative decoding (Leviathan et al. 2022, arXiv:2211.17192)."""

from __future__ import annotations

from newskills.base.records import Row, Score

_NAMES = ("spec_num_drafts", "spec_draft_tokens", "spec_accepted_tokens")


class SpecDecGrader:
    """Checks the counts of a record: `spec_num_drafts`, `spec_draft_tokens`, `spec_accepted_tokens`.

    Fields written: `spec_acceptance_rate` (0–1), `spec_acceptance_length` (tokens for each step of the model), and
    `is_correct` true: nothing is right or wrong here. A record without counts is unscored.
    """

    name = "specdec"
    version = "1"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        drafts, drafted, accepted = (record.get(name) for name in _NAMES)
        counted = all(isinstance(count, int) and count >= 0 for count in (drafts, drafted, accepted))
        if not counted or not drafts or not drafted or accepted > drafted:
            nothing: Row = {"spec_acceptance_rate": None, "spec_acceptance_length": None, "is_correct": None}
            why = f"the record has no sound counts of drafts ({', '.join(_NAMES)})"
            return Score(outcome="unscored", fields=nothing, grader=stamp, why=why, cause="provider")
        assert accepted is not None, "checked above"
        fields: Row = {
            "spec_acceptance_rate": accepted / drafted,
            "spec_acceptance_length": 1 + accepted / drafts,
            "is_correct": True,
        }
        return Score(outcome="correct", fields=fields, grader=stamp, value=accepted / drafted)
