# SPDX-License-Identifier: Apache-2.0
"""What a command line says of a file of questions."""

from __future__ import annotations

from msgspec import Struct

from newskills.benchmarks.files.format import AnswerAs, Columns, Kind


class TableWords(Struct, frozen=True, kw_only=True):
    """`++columns={question: q, answer: a}`, `++kind=choice`, `++answer_as=from_0`."""

    columns: dict[str, Columns] = {}
    kind: Kind | None = None
    answer_as: AnswerAs | None = None
