# SPDX-License-Identifier: Apache-2.0
"""Porter's stems: the examples of his paper (1980), step by step, and those words that NLTK treats otherwise."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.graders.reading.stems import stem_word

PLURALS = "caresses caress ponies poni ties tie caress caress cats cat pies pie is is gas ga spies spi"
PASTS = """
    feed feed agreed agre plastered plaster bled bled motoring motor sing sing conflated conflat troubled troubl
    sized size hopping hop tanned tan falling fall hissing hiss fizzed fizz failing fail filing file died die
    spied spi need need freed freed red red string string king king bring bring flying fli boxing box snowed snow
    trying tri crying cri using use aged age added ad
"""
ENDS_IN_Y = "happy happi sky sky enjoy enjoy say say cry cri by by dry dri boy boy syzygy syzygi"
SECOND = """
    relational relat conditional condit rational ration valenci valenc hesitanci hesit digitizer digit
    conformabli conform radicalli radic differentli differ vileli vile analogousli analog vietnamization vietnam
    predication predic operator oper feudalism feudal decisiveness decis hopefulness hope callousness callous
    formaliti formal sensitiviti sensit sensibiliti sensibl hopefully hope usefully use archaeology archaeolog
    logi logi geologi geolog nation nation station station ally alli totally total
"""
THIRD = """
    triplicate triplic formative form formalize formal electriciti electr electrical electr hopeful hope goodness good
    native nativ ful ful
"""
FOURTH = """
    revival reviv allowance allow inference infer airliner airlin gyroscopic gyroscop adjustable adjust
    defensible defens irritant irrit replacement replac adjustment adjust dependent depend adoption adopt
    homologou homolog communism commun activate activ angulariti angular homologous homolog effective effect
    bowdlerize bowdler opinion opinion million million decision decis cement cement
"""
FIFTH = (
    "probate probat rate rate cease ceas controll control roll roll tree tree the the axe axe here here gene gene"
)
IRREGULAR = """
    sky sky skies sky dying die lying lie tying tie news news innings inning inning inning outings outing
    cannings canning howe howe proceed proceed exceed exceed succeed succeed
"""


@pytest.mark.parametrize("words", [PLURALS, PASTS, ENDS_IN_Y, SECOND, THIRD, FOURTH, FIFTH, IRREGULAR])
def test_published_examples(words: str) -> None:
    pairs = words.split()
    expected = dict(zip(pairs[::2], pairs[1::2], strict=True))
    assert {word: stem_word(word) for word in expected} == expected
    assert {word: stem_word(word.upper()) for word in expected} == expected


@given(st.text(string.ascii_letters, max_size=12))
def test_a_stem_is_no_longer_than_its_word_and_begins_as_it_does(word: str) -> None:
    found = stem_word(word)
    assert found == stem_word(word.lower())
    assert len(found) <= len(word)
    assert found[:1] == word[:1].lower()
    if len(word) <= 2:
        assert found == word.lower()
