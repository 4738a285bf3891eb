# SPDX-License-Identifier: Apache-2.0
"""Parts of tasks of lm_eval that need none of its package: windows, conversations, values, names, options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.base.lm_eval.building import HarnessWishes
from newskills.base.lm_eval.chats import has_chat, marked_conversation, messages_of, render_context
from newskills.base.lm_eval.values import pack_value, unpack_value
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.lm_eval.names import task_slug
from newskills.config.values import Text
from newskills.pipelines.evaluation.harness_tasks import harness_wishes
from newskills.solve.tasks.lm_eval import rolling_windows


@given(st.integers(0, 60), st.integers(2, 9))
def test_windows_predict_each_token_once_after_what_fits(count: int, longest: int) -> None:
    ids = list(range(1, count + 1))
    made = list(rolling_windows(ids, 0, longest))
    assert [token for _, after in made for token in after] == ids
    assert all(len(before) + len(after) <= longest + 1 for before, after in made)
    text = [0, *ids]
    for before, after in made:
        place = text.index(after[0])
        assert before == text[place - len(before) : place]
        assert before


def test_windows_are_those_of_lm_eval() -> None:
    utils = pytest.importorskip("lm_eval.utils", reason="no lm_eval here: pip install -e '.[lm-eval]'")
    for count in (1, 7, 8, 9, 30):
        ids = list(range(1, count + 1))
        theirs = [
            utils.make_disjoint_window(pair)
            for pair in utils.get_rolling_token_windows(
                token_list=ids, prefix_token=0, max_seq_len=8, context_len=1
            )
        ]
        assert [(list(before), list(after)) for before, after in theirs] == list(rolling_windows(ids, 0, 8))


@given(st.text(), st.text(), st.booleans())
def test_a_conversation_survives_inside_a_text(content: str, behind: str, begins: bool) -> None:
    behind = behind.replace("\ue000", "").replace("\ue001", "")
    context = marked_conversation([{"role": "user", "content": content}], add_generation_prompt=begins)
    assert has_chat(context + behind)
    assert (
        render_context(context + behind, lambda turns, starts: f"{turns[0].content}{starts}")
        == f"{content}{begins}{behind}"
    )
    messages = messages_of(context)
    assert messages is not None
    assert [(turn.role, turn.content) for turn in messages] == [("user", content)]
    assert messages_of(f"{context}x") is None
    assert not has_chat(content.replace("\ue000", ""))


@pytest.mark.parametrize(
    "value", [None, True, 3, 0.1, "a", (1, 2.5), [(0, 1)], {"a": (1, "b")}, float("inf"), -1e300, ((1,), [2])]
)
def test_values_come_back_as_they_were(value: object) -> None:
    assert unpack_value(pack_value(value)) == value
    assert type(unpack_value(pack_value(value))) is type(value)


def test_numbers_of_numpy_keep_their_kind() -> None:
    numpy = pytest.importorskip("numpy")
    assert type(pack_value(numpy.float64(0.1))) is float
    assert unpack_value(pack_value(numpy.float32(0.1))).dtype == numpy.float32
    array = unpack_value(pack_value(numpy.array([0.25, 0.5], dtype="float32")))
    assert (array.dtype, array.tolist()) == (numpy.float32, [0.25, 0.5])
    with pytest.raises(TypeError, match="object"):
        pack_value(object())


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ConfigError, match=r"lm_eval is not installed\. Install it: pip install 'newskills\[lm-eval\]'"
    ):
        get_benchmark("lm-eval:arc_easy")
    with pytest.raises(ConfigError, match="names no task"):
        get_benchmark("lm-eval:")


def test_names_become_folders() -> None:
    assert task_slug("mmlu_pro.law") == "mmlu_pro-law"
    assert task_slug("places::inner") == "places-inner"


def test_options_are_read_and_wrong_ones_refused() -> None:
    words = {
        "num_fewshot": Text("5"),
        "apply_chat_template": Text("true"),
        "system_instruction": Text("'Be brief.'"),
    }
    wishes = HarnessWishes(num_fewshot=5, apply_chat_template=True, system_instruction="Be brief.")
    assert harness_wishes(words, "lm-eval:arc_easy") == wishes
    assert wishes.as_turns
    assert harness_wishes({}, "gsm8k") is None
    for wrong, told in (
        ({"num_fewshot": "two"}, r"\+\+num_fewshot=two"),
        ({"num_fewshot": "-1"}, "0 or more"),
        ({"fewshot_as_multiturn": "true"}, "apply_chat_template"),
    ):
        with pytest.raises(ConfigError, match=told):
            harness_wishes({key: Text(value) for key, value in wrong.items()}, "lm-eval:arc_easy")
    with pytest.raises(ConfigError, match="names none"):
        harness_wishes({"num_fewshot": Text("5")}, "gsm8k")
