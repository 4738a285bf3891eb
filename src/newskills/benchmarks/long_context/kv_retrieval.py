# SPDX-License-Identifier: Apache-2.0
"""The value of one of many keys in a JSON object (Liu et al. 2023, arXiv:2307.03172)."""

import json
from functools import partial

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_URL = "https://raw.githubusercontent.com/nelson-liu/lost-in-the-middle/main/kv_retrieval_data/kv-retrieval-{}_keys.jsonl.gz"
_PLACES = 5


def row(place: int | None, raw: Row, index: int) -> Row:
    """Map a row; `place` from 0 (first) to 4 (last): where the pair is moved to; None leaves it."""
    pairs = [tuple(pair) for pair in raw["ordered_kv_records"]]
    asked_pair = (raw["key"], raw["value"])
    at = pairs.index(asked_pair)
    if place is not None:
        pairs.insert(round((len(pairs) - 1) * place / (_PLACES - 1)), pairs.pop(at))
    lines = ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs)
    depth = pairs.index(asked_pair) * _PLACES // len(pairs)
    return {
        "problem": f"What is the value of the key {json.dumps(raw['key'])} in this JSON object?\n\n{{{lines}}}",
        "expected_answer": raw["value"],
        "depth": pairs.index(asked_pair) / (len(pairs) - 1),
        "subset_for_metrics": f"fifth {depth + 1}",
    }


def _source(split: str, keys: int, sha256: str = "") -> Source:
    commit = "29b8a6d042ce29abccee3db1a73171a107d7e6af"
    return Source(split=split, url=_URL.format(keys), revision=commit if sha256 else "", sha256=sha256)


_SHA256 = "eb6d61fc3473349f2b86df76757c6ab659cc929d907d24caf1c69928e03f6203"
_MOVED = tuple(f"at_{place}" for place in range(_PLACES))

BENCHMARK = Benchmark(
    name="kv-retrieval",
    category="long-context",
    title="Key-value retrieval: one of 75, 140 or 300 pairs",
    sources=(
        _source("test", 75, _SHA256),
        *(_source(split, 75, _SHA256) for split in _MOVED),
        _source("keys_140", 140),
        _source("keys_300", 300),
    ),
    row=partial(row, None),
    variants={split: partial(row, place) for place, split in enumerate(_MOVED)},
    prompt="generic/general-boxed",
    grader="exact",
    grader_config={"extract": "answer", "loose": True},
    metric="generic",
    items={"test": 500, **dict.fromkeys(_MOVED, 500)},
    licence="MIT",
    homepage="https://github.com/nelson-liu/lost-in-the-middle",
    citation="arXiv:2307.03172",
    traps=(
        "In the split test the pairs lie where the source has them; at_0 (first) to at_4 (last) show the curve.",
        "The splits keys_140 and keys_300 were never read from the live source.",
    ),
)
