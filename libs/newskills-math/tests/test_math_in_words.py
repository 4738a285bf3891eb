# SPDX-License-Identifier: Apache-2.0
"""Answers that are no expressions: figures, dates, times, numbers and sentences in words, each beside wrong twins."""

from __future__ import annotations

import re

import pytest

from newskills_math.verdict import equal

ALIKE = r"""
[triangles, angles, segments]
\triangle ABC ⇔ \triangle CAB
\triangle ABC ⇔ triangle ABC
\triangle ABC ⇎ \triangle ABD
\triangle ABC \sim \triangle DEF ⇔ \triangle BCA \sim \triangle EFD
\triangle ABC \sim \triangle DEF ⇔ \triangle DEF \sim \triangle ABC
\triangle ABC \sim \triangle DEF ⇔ \Delta ABC \sim \Delta DEF
\triangle ABC \sim \triangle DEF ⇎ \triangle ABC \sim \triangle EDF
\triangle ABC \cong \triangle DEF ⇎ \triangle ABC \cong \triangle DFE
\triangle ABC \cong \triangle DEF ⇎ \triangle ABC \sim \triangle DEF
\angle ABC ⇔ \angle CBA
\angle ABC ⇎ \angle ACB
\angle ABC = \angle DEF ⇔ \angle DEF = \angle CBA
\angle A = \angle B ⇎ \angle A = \angle C
\overline{AB} ⇔ \overline{BA}
\overline{AB} \parallel \overline{CD} ⇔ CD \parallel AB
\overline{AB} \parallel \overline{CD} ⇎ \overline{AB} \perp \overline{CD}
\overrightarrow{AB} ⇎ \overrightarrow{BA}
[dates]
July 4, 1776 ⇔ July 4th, 1776
July 4, 1776 ⇔ the 4th of July, 1776
July 4, 1776 ⇔ 1776-07-04
July 24, 1776 ⇔ 7/24/1776
March 3 ⇔ 3rd of March
March 3 ⇔ Tuesday, March 3
February 29 ⇔ Feb. 29
March 3 ⇎ May 3
March 3 ⇎ March 30
July 4, 1776 ⇎ July 4, 1777
July 4, 1776 ⇎ July 4
July 4, 1776 ⇎ 7/5/1776
[noon and midnight]
12:00 \text{ noon} ⇔ 12:00 pm
noon ⇔ 12 p.m.
midnight ⇔ 12:00 AM
4 o'clock ⇔ 4:00
noon ⇎ midnight
noon ⇎ 12 a.m.
[numbers in words]
twenty-one ⇔ 21
forty two ⇔ 42
one hundred and five ⇔ 105
three thousand ⇔ 3000
two million three hundred ⇔ 2000300
two thirds ⇔ \frac{2}{3}
a third ⇔ \frac13
one-half ⇔ 0.5
three and a half ⇔ 3.5
two and two thirds ⇔ \frac83
twenty-one ⇎ 19
forty-two ⇎ 24
twenty one ⇎ 20
one hundred five ⇎ 150
hundred hundred ⇎ 10000
two three ⇎ 23
twenty eleven ⇎ 31
third ⇎ \frac13
[sentences around a word]
Monday ⇔ on Monday
Monday ⇔ on a Monday
Monday ⇔ It is Monday.
Monday ⇔ the day is Monday
Monday ⇎ not on Monday
Monday ⇎ Monday or Tuesday
Monday ⇎ the day after Monday
isosceles ⇔ isosceles triangle
even ⇔ it is an even number
undefined ⇔ the limit does not exist
no solution ⇔ there is no real solution
sequence a ⇎ series a
[series]
converges ⇔ convergent
converges ⇔ The series converges.
converges ⇔ the integral is convergent
converges conditionally ⇔ conditionally convergent
diverges ⇔ divergent
diverges ⇔ does not converge
not convergent ⇔ the series diverges
converges ⇎ diverges
converges ⇎ does not converge
converges absolutely ⇎ converges conditionally
converges absolutely ⇎ does not converge absolutely
converges ⇎ converges conditionally
[ratios and remainders]
3:1 ⇔ 3 to 1
2:3 ⇔ 4 to 6
3:1 ⇎ 1 to 3
17 \text{ remainder } 3 ⇔ 17 R 3
17 \text{ remainder } 3 ⇔ quotient 17, remainder 3
17 \text{ remainder } 3 ⇎ 17
17 \text{ remainder } 3 ⇎ 3 R 17
\frac{5}{36} ⇔ 5 out of 36
\frac14 ⇔ 1 in 4
\frac14 ⇎ 1 to 4
\frac14 ⇎ 4 in 1
[sets of numbers]
(0,\infty) ⇔ \mathbb{R}^+
[0,\infty) ⇔ \mathbb{R}_{\geq 0}
(-\infty,0) ⇔ \mathbb{R}_{<0}
[0,\infty) ⇎ \mathbb{R}^+
(-\infty,2)\cup(2,\infty) ⇔ all real numbers except 2
\mathbb{R}\setminus\{-1,1\} ⇔ all real numbers except $x = -1$ and $x = 1$
\mathbb{R}\setminus\{-1,1\} ⇎ all real numbers except 1
\mathbb{Z} ⇔ all integers
-\infty ⇔ negative infinity
[vectors, graphs, bases, money]
\begin{pmatrix} 1 \\ -2 \end{pmatrix} ⇔ [1, -2]^T
\begin{pmatrix} 1 \\ -2 \end{pmatrix} ⇎ [-2, 1]^\top
f(x) = x^2-1 ⇔ y = x^2-1
f(x) = x^2-1 ⇎ y = x^2+1
FF_{16} ⇔ 0xFF
110_2 ⇔ (110)_2
110_2 ⇎ 0b111
0 ⇎ 0x2A
\$12.50 ⇔ US\$12.50
\$12.50 ⇎ US\$1.25
1.5 \times 10^{-3} \text{ mol/L} ⇔ 1.5 mM
2 \text{ M} ⇎ 2 mM
"""
"""Both ways round."""

ONE_WAY = r"""
11:30 \text{ pm} ⇔ 23:30
11:30 \text{ am} ⇔ 11:30
11:30 \text{ pm} ⇎ 11:30
3:00 PM ⇎ 3:00
3:00 ⇔ 3:00 PM
3:00 ⇔ 3:00 AM
3 \pmod 7 ⇔ 3
x \equiv 3 \pmod 7 ⇎ 3
x \equiv 3 \pmod 7 ⇎ 4
x \equiv 3 \pmod 7 ⇎ 7
\text{(C) } 12 ⇔ C
\text{(C) } 12 ⇔ 12
\text{(C) } 12 ⇎ 13
\text{(C) } 12 ⇎ (B) 12
"""
"""Right answer first, then a reply."""


def rows(table: str) -> list[tuple[str, str, bool]]:
    """`⇔` between two that are the same answer, `⇎` between two that are not."""
    lines = [line for line in table.splitlines() if line and not line.startswith("[")]
    sides = [re.split(" [⇔⇎] ", line) for line in lines]
    return [(gold, pred, "⇔" in line) for (gold, pred), line in zip(sides, lines, strict=True)]


@pytest.mark.parametrize(("gold", "pred", "same"), rows(ALIKE) + rows(ONE_WAY))
def test_words_are_read_for_what_they_mean(gold: str, pred: str, same: bool) -> None:
    assert equal(pred, gold)[0] is same


@pytest.mark.parametrize(("gold", "pred", "same"), rows(ALIKE))
def test_neither_side_is_special(gold: str, pred: str, same: bool) -> None:
    assert equal(gold, pred)[0] is same
