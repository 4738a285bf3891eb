# SPDX-License-Identifier: Apache-2.0
"""Errors between two sequences of words, by the alignment of jiwer; sums of them are the scores of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct


class Edits(Struct, frozen=True, kw_only=True):
    """What turns the right words into those heard; `length`: number of right words."""

    substitutions: int
    insertions: int
    deletions: int
    length: int

    @property
    def errors(self) -> int:
        return self.substitutions + self.insertions + self.deletions

    @property
    def rate(self) -> float:
        """Errors for each right word; where there is none, 1 for anything that was heard."""
        if self.length:
            return self.errors / self.length
        return float(self.errors > 0)


class AlignmentChunk(Struct, frozen=True):
    """A run of the alignment: `kind` (equal, substitute, insert, delete), right words and heard ones."""

    kind: str
    right: Sequence[str]
    heard: Sequence[str]


def align_words(right: Sequence[str], heard: Sequence[str]) -> list[AlignmentChunk]:
    """Return the cheapest alignment, in order."""
    if not right and not heard:
        return []
    if not right:
        return [AlignmentChunk("insert", right, heard)]
    if not heard:
        return [AlignmentChunk("delete", right, heard)]
    import jiwer

    same = jiwer.Compose([jiwer.ReduceToListOfListOfWords(word_delimiter="\n")])
    output = jiwer.process_words(
        "\n".join(right), "\n".join(heard), reference_transform=same, hypothesis_transform=same
    )
    return [
        AlignmentChunk(
            chunk.type,
            right[chunk.ref_start_idx : chunk.ref_end_idx],
            heard[chunk.hyp_start_idx : chunk.hyp_end_idx],
        )
        for chunk in output.alignments[0]
    ]


def count_edits(chunks: Sequence[AlignmentChunk]) -> Edits:
    """Count the edits and the right words of an alignment."""
    count = dict.fromkeys(("equal", "substitute", "insert", "delete"), 0)
    for chunk in chunks:
        count[chunk.kind] += max(len(chunk.right), len(chunk.heard))
    return Edits(
        substitutions=count["substitute"],
        insertions=count["insert"],
        deletions=count["delete"],
        length=count["equal"] + count["substitute"] + count["delete"],
    )


def joined_compounds(right: Sequence[str], heard: Sequence[str]) -> list[str]:
    """Return `heard`, with words written as in `right` where only the blanks between them differ."""
    joined: list[str] = []
    differing: list[AlignmentChunk] = []
    for chunk in [*align_words(right, heard), AlignmentChunk("equal", (), ())]:
        if chunk.kind != "equal":
            differing.append(chunk)
            continue
        ours = [word for part in differing for word in part.heard]
        theirs = [word for part in differing for word in part.right]
        joined += theirs if "".join(ours) == "".join(theirs) else ours
        joined += chunk.heard
        differing = []
    return joined


def mark_errors(chunks: Sequence[AlignmentChunk], is_mark: Callable[[str], bool]) -> tuple[int, int]:
    """Return (errors of punctuation marks, these plus the right ones): punctuation error rate (arXiv:2310.02943)."""
    errors = right = 0
    for chunk in chunks:
        if chunk.kind == "equal":
            right += sum(map(is_mark, chunk.right))
        elif chunk.kind == "substitute":
            errors += sum(
                is_mark(ours) or is_mark(theirs) for ours, theirs in zip(chunk.right, chunk.heard, strict=True)
            )
        else:
            errors += sum(map(is_mark, [*chunk.right, *chunk.heard]))
    return errors, errors + right


def mark_hits(chunks: Sequence[AlignmentChunk], is_mark: Callable[[str], bool]) -> tuple[int, int]:
    """Return (twice the marks that stand where they should, all marks of both sides); their quotient is F1."""
    hits = sum(sum(map(is_mark, chunk.right)) for chunk in chunks if chunk.kind == "equal")
    marks = sum(sum(map(is_mark, [*chunk.right, *chunk.heard])) for chunk in chunks)
    return 2 * hits, marks


def same_case(right: Sequence[str], heard: Sequence[str]) -> tuple[int, int]:
    """Return (words heard rightly whose capitals are right, too; words heard rightly)."""
    same = words = 0
    place = other = 0
    for chunk in align_words([word.casefold() for word in right], [word.casefold() for word in heard]):
        if chunk.kind == "equal":
            words += len(chunk.right)
            pairs = zip(right[place:], heard[other : other + len(chunk.heard)], strict=False)
            same += sum(ours == theirs for ours, theirs in pairs)
        place, other = place + len(chunk.right), other + len(chunk.heard)
    return same, words
