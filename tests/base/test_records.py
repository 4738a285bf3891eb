# SPDX-License-Identifier: Apache-2.0
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.records import Inference, Ledger, Message, Request

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(TEXT, TEXT, st.floats(0, 2), st.integers(0, 9))
def test_the_key_changes_with_what_the_model_sees(first: str, second: str, temperature: float, seed: int) -> None:
    def key(text: str, **changes: Any) -> str:
        inference = Inference(temperature=temperature, **({"random_seed": seed} | changes))
        return Request(messages=[Message("user", text)], inference=inference).key("id")

    assert (key(first) == key(second)) == (first == second)
    assert key(first) != key(first, random_seed=seed + 1)
    assert key(first) == key(first, timeout=3.0)
    assert key(first) != Request(messages=[Message("user", first)]).key("other")


def test_messages_are_the_openai_shape() -> None:
    assert msgspec.to_builtins(Message("user", "hi")) == {"role": "user", "content": "hi"}


def test_the_ledger_counts_what_the_instrument_lost() -> None:
    ledger = Ledger(
        correct=5, wrong=3, no_answer=1, unscored=3, causes={"model": 3, "truncation": 1, "provider": 3}
    )
    assert (ledger.total, ledger.lost) == (12, 3)
