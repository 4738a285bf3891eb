# SPDX-License-Identifier: Apache-2.0
"""Word error rates of the Open ASR Leaderboard: its normaliser of English, and its alignment of words."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_GOLDS = (
    "mister quilter is the apostle of the middle classes",
    "I'll pay you twenty five dollars and fifty cents, won't I?",
    "The colour of Dr. Smith's house isn't gray.",
    "uh so we um we started in nineteen ninety nine",
    "He said it's 3:30 p.m. on May 5th, 2021.",
    "they've got two hundred and three percent more",
    "Let's meet at the 21st Street; that's where she'd been.",
    "naïve café owners can't résumé",
    "one oh seven point nine fm, you're listening",
    "It cost $1,200,000 or £15.",
    "the organisation realised its behaviour",
    "<unk> well [laughter] I (sort of) knew",
    "no. no no no okay OK",
    "St. James and Prof. Moriarty aren't gonna come",
    "a double o seven triple three",
    "minus five degrees, a half and three quarters",
    "the B B C sent an e-mail about the white paper at 9 a.m.",
    "Alan's brother, Mr. Garry, kinda knew 'cause she'd gone",
)


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    words = gold.split()
    return {
        "the same": gold,
        "small letters": gold.lower(),
        "capitals": gold.upper(),
        "no punctuation": "".join(char for char in gold if char.isalnum() or char in " '"),
        "point": f"{gold}.",
        "contractions": gold.replace("'ll", " will").replace("n't", " not").replace("it's", "it is"),
        "digits": _digits(gold),
        "words": gold.replace("$", "dollars ").replace("21st", "twenty first").replace("3:30", "three thirty"),
        "american": gold.replace("colour", "color").replace("our", "or").replace("isation", "ization"),
        "titles": gold.replace("mister", "Mr.").replace("Dr.", "doctor").replace("Prof.", "professor"),
        "fillers": " um ".join(words[:3]) + " uh " + " ".join(words[3:]),
        "first word missing": " ".join(words[1:]),
        "last word missing": " ".join(words[:-1]),
        "a word more": f"{gold} indeed",
        "every other word": " ".join(words[::2]),
        "two swapped": " ".join([words[1], words[0], *words[2:]]),
        "twice": f"{gold} {gold}",
        "hyphens": gold.replace(" ", "-", 1),
        "curly quotes": gold.replace("'", "’"),
        "another": "something else was said here",
        "bracketed remark": f"{gold} [music]",
        "spelt together": gold.replace("B B C", "BBC")
        .replace("e-mail", "email")
        .replace("white paper", "whitepaper"),
        "other names": gold.replace("Alan", "Allen").replace("Garry", "Gary"),
        "more fillers": gold.replace(" ", " huh ", 1).replace(" the ", " ah the "),
        "accents gone": gold.replace("ï", "i").replace("é", "e"),
    }


def _digits(text: str) -> str:
    for word, digits in (
        ("twenty five", "25"),
        ("nineteen ninety nine", "1999"),
        ("two hundred and three", "203"),
    ):
        text = text.replace(word, digits)
    return text.replace("fifty", "50").replace("percent", "%").replace("one oh seven point nine", "107.9")


def _accuracy(rate: float) -> float:
    """Scores are 0 to 1: the share of words that are right, 0 where there are more errors than words."""
    return 1 - min(rate, 1.0)


def ours(row: Row, reply: Any) -> float | None:
    rate = by_grader("audio", {"normalization_mode": "hf_leaderboard"}, value="wer")(row, reply)
    return None if rate is None else _accuracy(rate)


def original(folder: Path) -> Verdict:
    """Needs kaldialign and regex."""
    sys.path.insert(0, str(folder / "normalizer"))
    sys.path.insert(0, str(folder))
    normaliser = importlib.import_module("normalizer.normalizer").EnglishTextNormalizer()
    rate = importlib.import_module("kaldialign").batch_error_rate

    def verdict(row: Row, reply: Any) -> float:
        right, heard = (tuple(normaliser(text).split()) for text in (row["expected_answer"], reply))
        return _accuracy(float(rate([right], [heard], merge_compounds=True)["err_rate"]))

    return verdict


COMPARISON = Comparison(
    name="asr",
    benchmarks=("asr-leaderboard",),
    scorer="Open ASR Leaderboard, `normalizer.py` and kaldialign",
    compared=WHOLE,
    repository="huggingface/open_asr_leaderboard",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={"other names": "the original has a list of names that it makes alike, such as Alan and Allen"},
)
