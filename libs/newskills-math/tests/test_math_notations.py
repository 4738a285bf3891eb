# SPDX-License-Identifier: Apache-2.0
"""Notations that are one answer, each beside twins that look alike and are another."""

from __future__ import annotations

import pytest

from newskills_math.verdict import equal

NOTATIONS = r"""
[blanks between groups of three]
1\;234\;567 = 1234567
1\:234\:567 = 1,234,567
1~234~567 = 1234567
1\;234.5 = 1234.5
1\;23\;4567 ≠ 1234567
1\;2 ≠ 12
1\;234\;56 ≠ 123456
[determinants]
\begin{vmatrix} 2 & 3 \\ 1 & 4 \end{vmatrix} = 5
\begin{vmatrix} 2 & 3 \\ 1 & 4 \end{vmatrix} ≠ 11
\begin{vmatrix} 2 & 3 \\ 1 & 4 \end{vmatrix} ≠ \begin{pmatrix} 2 & 3 \\ 1 & 4 \end{pmatrix}
[cis]
2\operatorname{cis}\frac{\pi}{3} = 1+\sqrt{3}i
2\operatorname{cis} 60^\circ = 2\left(\cos 60^\circ + i \sin 60^\circ\right)
2\,\text{cis}(60^\circ) = 2e^{i\pi/3}
2 cis 60° = 2\operatorname{cis} 60^\circ
4\operatorname{cis}\frac{\pi}{3} ≠ 1+\sqrt{3}i
2\operatorname{cis}\frac{\pi}{3} ≠ 1-\sqrt{3}i
2\operatorname{cis}\frac{\pi}{3} ≠ 2\cos\frac{\pi}{3}
[several solutions of several unknowns]
p=5,q=2;p=7,q=2 = p=7,q=2;p=5,q=2
p=5, q=2; p=7, q=2 = (5,2),(7,2)
p=5, q=2 \text{ or } p=7, q=2 = q=2, p=5; q=2, p=7
x=1,y=2,x=3,y=4 = x=3,y=4,x=1,y=2
p=5,q=2;p=7,q=2 ≠ p=5,q=2
p=5,q=2;p=7,q=2 ≠ p=2,q=5;p=2,q=7
p=5,q=2;p=7,q=3 ≠ p=5,q=3;p=7,q=2
p=5,q=2;p=7,q=2 ≠ p=5,q=2;p=7,q=2;p=9,q=2
x=1,x=2 ≠ y=1,y=2
[functions of one variable]
K(t)=3-2e^{-t/20} = 3-2e^{-t/20}
y(x)=2x^2 = y=2x^2
y(x)=2x^2 = y(t)=2t^2
y(x)=2x, z(x)=3 = z=3, y=2x
K(t)=3-2e^{-t/20} ≠ .3-.2e^{-t/20}
y(x)=2x^2 ≠ y=x^2
y(0)=2 ≠ y=2
y(0)=2 ≠ y(1)=2
x(x+1)=6 ≠ x+1
[degrees, minutes and seconds]
30°15' = 30^{\circ} 15^{\prime}
30^\circ 15' = 30^{\circ} 15^{\prime}
30.25^\circ = 30^{\circ} 15^{\prime}
179^\circ 59' 56'' = $179^{\circ} 59^{\prime} 56^{\prime \prime}$
-317° 3′ 36″ = -317^{\circ} 3^{\prime} 36^{\prime \prime}
67^{\circ}\,30' = 67.5^\circ
36.87° = 36^\circ 52' 12''
30°16' ≠ 30^{\circ} 15^{\prime}
30^\circ ≠ 30^{\circ} 15^{\prime}
-30°15' ≠ 30°15'
30°15'1'' ≠ 30°15'
36.8° ≠ 36^\circ 52'
0 ≠ 179^{\circ} 59^{\prime} 56^{\prime \prime}
[small powers side by side]
3b^4 ≠ -3 b^{4}+13 b^{3}-7 b^{2}-
[times of day]
3:00 PM = 3 p.m.
3:00 PM = 3:00\text{ p.m.}
3:00PM = \text{3:00 PM}
15:00 = 3:00 PM
12:30 AM = 0:30
3:00 PM ≠ 3:00 AM
3:00 PM ≠ 3:30 PM
3:00 PM ≠ 4 PM
15:00 ≠ 3:00 AM
3:00 PM ≠ 300
3:00 PM ≠ 3
12:30 PM ≠ 0:30
[letters in calligraphy]
\mathcal{B} = B
\mathcal B = \text{B}
\mathcal{B} = (B)
\mathcal{B} ≠ A
\mathcal{B} ≠ \mathcal{A}
[limits]
\int\limits_{a}^{b} f(x)\,dx = \int_a^b f(x) dx
\lim\limits_{x \to 0} f(x) = \lim_{x\to 0} f(x)
\int\limits_a^b f(x)\,dx ≠ \int_b^a f(x) dx
\int\limits_a^b f(x)\,dx ≠ \int_a^b g(x) dx
x^{2}3 ≠ x^{23}
[sets behind a name]
k=\{1\pm\sqrt5,-2\} = 1+\sqrt5,1-\sqrt5,-2
k=\{1\pm\sqrt5,-2\} = k=1\pm\sqrt5,-2
k=\{1\pm\sqrt5,-2\} = \{-2, 1-\sqrt5, 1+\sqrt5\}
k=\{1\pm\sqrt5,-2\} ≠ 1\pm\sqrt5
k=\{1\pm\sqrt5,-2\} ≠ \{1+\sqrt5,-2\}
k=\{1\pm\sqrt5,-2\} ≠ m=\{1\pm\sqrt5,-2\}
[several options]
AC = A, C
A, B and D = ABD
(A), (C) = AC
AC ≠ A, B
AC ≠ A
AC ≠ A, B, C
AC ≠ A or C
[numbers of choices]
C_{10}^3 = 120
C_{10}^{3} = \binom{10}{3}
\mathrm{C}_{10}^{3} = 120
{}_{10}C_3 = 120
^{10}C_3 = \binom{10}{7}
C_n^2 = \frac{n(n-1)}{2}
A_{5}^{2} = 20
{}_5P_2 = 20
2C_{5}^{2} = 20
C_{10}^3 ≠ \binom{10}{4}
C_{10}^3 ≠ 1000
C_3^{10} ≠ 120
x_{10}^3 ≠ 120
A_{5}^{2} ≠ 10
[formulas between words]
we get \dfrac{1}{2} meters = \frac12
the probability is \dfrac{1}{2}. = 0.5
so the perimeter equals 4\pi units = 4\pi
the probability is not \dfrac{1}{2} ≠ \frac12
the value cannot be \dfrac{1}{2} ≠ \frac12
it is either \dfrac{1}{2} or \dfrac13 ≠ \frac12
the area is more than \dfrac{1}{2} ≠ \frac12
half of \dfrac{1}{2} is the answer ≠ \frac12
from \dfrac{1}{2} follows \dfrac13 ≠ \frac12
[constants of a general solution]
y=C_1e^x+C_2e^{-x} = y=Ae^x+Be^{-x}
C_1e^x+C_2e^{-x} = c_1e^{x}+c_2e^{-x}
e^{2x}+C_1 = e^{2x}+C
Ae^{2t} = Ce^{2t}
kx ≠ Ax
C_1e^x+C_2e^{x} ≠ Ae^x+Be^{-x}
Ae^x+Ae^{-x} ≠ C_1e^x+C_2e^{-x}
Ae^{2t} ≠ Ce^{3t}
Ax+B ≠ Cx
kt ≠ ct
ky ≠ my
[letters for whole turns]
\frac{\pi}{4}+n\pi = \frac{\pi}{4}+k\pi
\frac{\pi}{4}+n\pi, n\in\mathbb{Z} = \frac{\pi}{4}+k\pi, k\in\mathbb{Z}
x=2n\pi,\ n\in\mathbb{Z} = x=2k\pi, k \in \mathbb Z
\frac{\pi}{4}+2n\pi ≠ \frac{\pi}{4}+k\pi
x=2n\pi, n\in\mathbb{Z} ≠ x=k\pi, k\in\mathbb{Z}
n+1 ≠ k+1
n\pi ≠ k\pi
[unit vectors]
\hat{i}+2\hat{j} = \mathbf{i}+2\mathbf{j}
3\hat{\imath}-\hat{\jmath}+\hat{k} = 3\mathbf{i}-\mathbf{j}+\mathbf{k}
\mathbf{i}+2\mathbf{j}+3\mathbf{k} = \langle 1,2,3\rangle
-\hat{i}+\frac{1}{2}\hat{j} = \begin{pmatrix} -1 \\ \frac12 \end{pmatrix}
\mathbf{i}-3\mathbf{k} = (1,0,-3)
2\hat i + 3\hat j = \langle 2,3,0\rangle
(1+\sqrt{2})\mathbf{i}-2\mathbf{j} = \langle 1+\sqrt2,-2\rangle
\mathbf{i}+2\mathbf{j} ≠ \langle 2,1\rangle
\mathbf{i}-2\mathbf{j} ≠ \langle 1,2\rangle
\hat{i}+2\hat{k} ≠ \hat{i}+2\hat{j}
\mathbf{i}+2\mathbf{j} ≠ 1+2
[derivatives]
y'=2x = \frac{dy}{dx}=2x
y''+y=0 = \frac{d^2y}{dx^2}+y=0
y'=2x ≠ \frac{dy}{dx}=x
y''+y=0 ≠ \frac{dy}{dx}+y=0
[residue classes]
m=7k+3 = m \equiv 3 \pmod 7
7k+3 = 3 \pmod 7
3+7n = m \equiv 3 \pmod 7
7k-4, k\in\mathbb{Z} = 3 \pmod 7
n \equiv \pm 1 \pmod 5 = n \equiv 1,4 \pmod 5
7k+4 ≠ 3 \pmod 7
3k+7 ≠ 3 \pmod 7
n \equiv \pm 1 \pmod 5 ≠ n \equiv 1 \pmod 5
[limits]
does not exist = \text{DNE}
\text{The limit does not exist} ≠ 0
[hours and minutes]
2 hours and 30 minutes = 2.5 hours
2 \text{ hours and } 30 \text{ minutes} = 150 minutes
1 hour, 15 minutes = 75 minutes
1 hour, 15 minutes and 30 seconds = 4530 seconds
5 feet and 3 inches = 63 inches
2 \text{ hours } 15 \text{ minutes} = 135\text{ min}
2~\text{h}~15~\text{min} = 135 minutes
2h 15min = 2.25 hours
5\text{ ft }6\text{ in} = 66 inches
2 m 30 cm = 230 cm
1 hour 30 minutes = 90
3\text{ min}, 5\text{ min} = 5 min, 3 min
2h 15min ≠ 136 minutes
2m, 30cm ≠ 2.3 m
1 hour 30 minutes ≠ 1
2\text{min}(3,4) ≠ 2 minutes
2 hours and 30 minutes ≠ 2.3 hours
2 hours and 30 minutes ≠ 2 hours
2 hours or 30 minutes ≠ 2.5 hours
30 minutes and 2 hours ≠ 30 minutes
2 hours and 30 kilometers ≠ 2.5 hours
[comparisons]
5 more apples = 5
5 more = 5
5 fewer apples = 5
5 \text{ more apples} = 5 apples
5 more apples ≠ 6
5 more apples ≠ 5 fewer apples
5 or more apples ≠ 5
5 more than 3 ≠ 5
more than 5 apples ≠ 5
no more than 5 apples ≠ 5
"""


def twins() -> list[tuple[str, str, bool]]:
    cases = []
    for line in filter(None, NOTATIONS.splitlines()):
        if line.startswith("["):
            both_ways = line != "[formulas between words]"
            continue
        left, mark, right = line.rpartition(" ≠ ") if " ≠ " in line else line.partition(" = ")
        cases.append((left, right, mark == " = "))
        if both_ways:
            cases.append((right, left, mark == " = "))
    return cases


@pytest.mark.parametrize(("pred", "gold", "same"), twins())
def test_notations_and_their_twins(pred: str, gold: str, same: bool) -> None:
    assert equal(pred, gold)[0] is same
