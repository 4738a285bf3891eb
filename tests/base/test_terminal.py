# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from newskills.base.terminal import printable


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert printable("a\x1b[2Jb\n\x07c\u202e\td\udcff") == "a\\x1b[2Jb\n\\x07c\\u202e\td\\udcff"


@given(st.text(st.characters(codec=None)))
def test_what_is_left_can_be_written_and_is_obeyed_by_nobody(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert all(ch in "\n\t" or ch.isprintable() for ch in shown)
