# SPDX-License-Identifier: Apache-2.0
"""Instructions of IFBench (Pyatkin et al. 2025, arXiv:2507.02833) about words, counts, ratios and sentences.

Where the released checks changed over time, the later form is followed, which is the one that the instruction's
wording means (whole words). Checks as in `ifeval`: pure, never raising for a text, linear in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.graders.instructions.ifeval import Check
from newskills.graders.instructions.texts import (
    BLANK_OR_MARK,
    STOP_WORDS,
    bare_words,
    plain_words,
    split_sentences,
    treebank_tokens,
    without_marks,
    word_set,
)
from newskills.graders.instructions.verbs import starts_with_verb

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_CONJUNCTIONS = frozenset(("and", "but", "for", "nor", "or", "so", "yet"))
_PEOPLE = """Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia Benjamin
Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett Nathan Victoria Elijah
Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella
Jonathan"""
_PERSON = re.compile(rf"\b(?:{'|'.join(_PEOPLE.split())})\b")
_PRONOUNS = word_set(
    """i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves"""
)
_CLUSTER = re.compile(r"[b-df-hj-np-tv-z]{2}")
_PRIMES = frozenset(n for n in range(2, 100) if all(n % d for d in range(2, n)))
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_NUMBER = re.compile(r"\d+")
_KEYWORD_COUNTS = {"keyword1": 1, "keyword2": 2, "keyword3": 3, "keyword4": 5, "keyword5": 7}


def _word_range(text: str, args: Row) -> bool:
    return bool(args["min_words"] <= len(plain_words(text)) <= args["max_words"])


def _unique_words(text: str, args: Row) -> bool:
    return bool(len({word.strip(BLANK_OR_MARK) for word in text.lower().split()}) >= args["N"])


def _stop_words(text: str, args: Row) -> bool:
    words = plain_words(text.lower())
    count = sum(word in STOP_WORDS for word in words)
    return bool(words) and 100 * count / len(words) <= args["percentage"]


def _sentence_ends(text: str) -> Counter[str]:
    return Counter(sentence[-1:] for sentence in split_sentences(text))


def _two_to_one(text: str, args: Row) -> bool:
    ends = _sentence_ends(text)
    return ends["."] == 2 * ends["?"]


def _has_balanced_ends(text: str, args: Row) -> bool:
    ends = _sentence_ends(text)
    return ends["."] == ends["?"] == ends["!"]


def _has_conjunctions(text: str, args: Row) -> bool:
    """Check the number of different conjunctions; `and` and `And` are two, as in the original."""
    conjunctions = {word for word in text.split() if word.strip(BLANK_OR_MARK).lower() in _CONJUNCTIONS}
    return bool(len(conjunctions) >= args["small_n"])


def _names_people(text: str, args: Row) -> bool:
    return bool(len(set(_PERSON.findall(text))) >= args["N"])


def _has_trigram_overlap(text: str, args: Row) -> bool:
    """Check the share of the answer's trigrams of characters that the reference has, within 2 points."""
    own = _trigrams_of(text)
    if not own:
        return False
    share = 100 * len(own & _reference_trigrams(args["reference_text"])) / len(own)
    return bool(args["percentage"] - 2 <= share <= args["percentage"] + 2)


def _trigrams_of(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(zip(text, text[1:], text[2:], strict=False))


@lru_cache(maxsize=64)
def _reference_trigrams(text: str) -> frozenset[tuple[str, ...]]:
    return _trigrams_of(text)


def _has_numbers(text: str, args: Row) -> bool:
    return bool(len(_NUMBER.findall(without_marks(text))) == args["N"])


def _has_pronouns(text: str, args: Row) -> bool:
    return bool(sum(word in _PRONOUNS for word in bare_words(text.replace("/", " "))) >= args["N"])


def _has_japanese_words(text: str, args: Row) -> bool:
    every = args["N"]
    wanted = (word.strip(BLANK_OR_MARK) for word in text.split()[every - 1 :: every])
    return all(_JAPANESE.search(word) for word in wanted if word and not word.isdigit())


def _keywords_multiple(text: str, args: Row) -> bool:
    return all(
        len(re.findall(rf"\b{re.escape(args[name].strip())}\b", text, re.IGNORECASE)) == count
        for name, count in _KEYWORD_COUNTS.items()
    )


def _follows_alphabet(text: str, args: Row) -> bool:
    words = bare_words(text)
    if not words or words[0][0] not in _ALPHABET:
        return False
    return all(
        now[0] in _ALPHABET and (_ALPHABET.index(now[0]) - _ALPHABET.index(before[0])) % 26 == 1
        for before, now in pairwise(words)
    )


def _three_vowels(text: str, args: Row) -> bool:
    text = text.strip().lower()
    return "\n" not in text and len(set(text) & set("aeiou")) <= 3


def _consonant_clusters(text: str, args: Row) -> bool:
    return all(_CLUSTER.search(word) for word in text.lower().split())


def _has_palindromes(text: str, args: Row) -> bool:
    return sum(len(word) >= 5 and word == word[::-1] for word in bare_words(text)) >= 10


def _prime_lengths(text: str, args: Row) -> bool:
    return all(len(word) in _PRIMES for word in without_marks(text).split())


def _start_verb(text: str, args: Row) -> bool:
    return starts_with_verb(text)


def _limits_repeats(text: str, args: Row) -> bool:
    return bool(max(Counter(bare_words(text)).values(), default=0) <= args["small_n"])


def _alternates_syllables(text: str, args: Row) -> bool:
    parities = [_syllable_count(word) % 2 for word in bare_words(text)]
    return all(a != b for a, b in pairwise(parities))


@lru_cache(maxsize=1 << 16)
def _syllable_count(word: str) -> int:
    try:
        from syllapy import count
    except ImportError as error:
        raise ConfigError(
            "Syllables are counted with syllapy, which is not installed.",
            hint="pip install 'newskills[instructions]'",
        ) from error
    return int(count(word))


def _last_first(text: str, args: Row) -> bool:
    for before, now in pairwise(sentence.lower() for sentence in split_sentences(text)):
        last, first = before.rstrip(BLANK_OR_MARK).split()[-1:], now.lstrip(BLANK_OR_MARK).split()[:1]
        if not last or last != first:
            return False
    return True


def _paragraph_last_first(text: str, args: Row) -> bool:
    paragraphs = (line.strip().strip(BLANK_OR_MARK).lower().split() for line in text.split("\n"))
    return all(words[0] == words[-1] for words in paragraphs if words)


def _no_consecutive(text: str, args: Row) -> bool:
    return all(before[0] != now[0] for before, now in pairwise(bare_words(text)))


def _keyword_position(text: str, args: Row) -> bool:
    all_sentences, n, m = split_sentences(text), args["n"], args["m"]
    words = _spoken_tokens(all_sentences[n - 1]) if 0 < n <= len(all_sentences) else []
    return bool(0 < m <= len(words) and words[m - 1] == args["keyword"].strip())


def _words_position(text: str, args: Row) -> bool:
    words = _spoken_tokens(text)
    return len(words) >= 2 and words[1].lower() == words[-2].lower() == args["keyword"].strip().lower()


def _spoken_tokens(text: str) -> list[str]:
    return [token for token in treebank_tokens(text) if any(map(str.isalnum, token))]


def _has_growing_alliteration(text: str, args: Row) -> bool:
    """Check that words in runs of the same first letter, counted over a sentence, grow from sentence to sentence."""
    lengths = [-1]
    for sentence in split_sentences(text):
        words = [word.lstrip(BLANK_OR_MARK) for word in sentence.lower().split()]
        same = [before[0] == now[0] for before, now in pairwise(filter(None, words))]
        runs = sum(now and not before for before, now in pairwise([False, *same]))
        lengths.append(sum(same) + runs)
    return all(before < now for before, now in pairwise(lengths))


def _has_growing_sentences(text: str, args: Row) -> bool:
    counts = [len(without_marks(sentence).split()) for sentence in split_sentences(text)]
    return all(now == before + args["small_n"] for before, now in pairwise(counts))


def _sentence_keyword(text: str, args: Row) -> bool:
    all_sentences, n = split_sentences(text), args["N"]
    return 0 < n <= len(all_sentences) and args["word"].lower() in all_sentences[n - 1].lower()


def _sentence_words(text: str, args: Row) -> bool:
    all_sentences = split_sentences(text)
    words = bare_words(" ".join(all_sentences))
    return (
        len(all_sentences) == 3
        and len(set(map(len, all_sentences))) == 1
        and bool(words)
        and len(words) == len(set(words))
    )


CHECKS: Mapping[str, Check] = {
    "count:word_count_range": _word_range,
    "count:unique_word_count": _unique_words,
    "count:conjunctions": _has_conjunctions,
    "count:person_names": _names_people,
    "count:numbers": _has_numbers,
    "count:pronouns": _has_pronouns,
    "count:words_japanese": _has_japanese_words,
    "count:keywords_multiple": _keywords_multiple,
    "ratio:stop_words": _stop_words,
    "ratio:sentence_type": _two_to_one,
    "ratio:sentence_balance": _has_balanced_ends,
    "ratio:overlap": _has_trigram_overlap,
    "ratio:sentence_words": _sentence_words,
    "words:alphabet": _follows_alphabet,
    "words:vowel": _three_vowels,
    "words:consonants": _consonant_clusters,
    "words:palindrome": _has_palindromes,
    "words:prime_lengths": _prime_lengths,
    "words:start_verb": _start_verb,
    "words:repeats": _limits_repeats,
    "words:odd_even_syllables": _alternates_syllables,
    "words:last_first": _last_first,
    "words:paragraph_last_first": _paragraph_last_first,
    "words:no_consecutive": _no_consecutive,
    "words:keywords_specific_position": _keyword_position,
    "words:words_position": _words_position,
    "sentence:alliteration_increment": _has_growing_alliteration,
    "sentence:increment": _has_growing_sentences,
    "sentence:keyword": _sentence_keyword,
}
