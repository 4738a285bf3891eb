# SPDX-License-Identifier: Apache-2.0
from newskills.recipes.improve.examples import GradedReply, mixed_problems, select_replies
from newskills.recipes.improve.records import MIXTURES, RoundMixture

USUAL, HARD = MIXTURES[0], RoundMixture(name="hard", hard=True)


def reply(problem: str, text: str, outcome: str = "correct", finish_reason: str = "stop") -> GradedReply:
    return GradedReply(problem, text, outcome, finish_reason)


def test_different_correct_whole_replies_are_chosen_and_the_others_counted() -> None:
    replies = [
        reply("a", "1"),
        reply("a", " 1\n"),
        reply("a", "one"),
        reply("a", "uno"),
        reply("a", "2", "wrong"),
        reply("b", "3", "unscored"),
        reply("b", "4", finish_reason="length"),
        reply("b", "", "no_answer"),
    ]
    chosen, count = select_replies(replies, USUAL, 2)
    assert [(item.problem, item.text) for item in chosen] == [("a", "1"), ("a", "one")]
    assert (count.problems, count.replies, count.examples) == (2, 8, 2)
    assert (count.unscored, count.wrong, count.cut_off, count.repeated, count.too_many) == (1, 2, 1, 1, 1)
    left_out = count.unscored + count.wrong + count.cut_off + count.repeated + count.too_easy + count.too_many
    assert count.replies == count.examples + left_out


def test_only_hard_problems_are_those_of_which_at_most_half_is_correct() -> None:
    replies = [reply("easy", "1"), reply("easy", "2"), reply("easy", "3", "wrong")]
    replies += [reply("hard", "1"), reply("hard", "2", "wrong")]
    chosen, count = select_replies(replies, HARD, 4)
    assert [item.problem for item in chosen] == ["hard"]
    assert count.too_easy == 2


def test_problems_for_grpo_have_correct_and_wrong_replies() -> None:
    replies = [
        *(reply("mixed", str(n), "correct" if n else "wrong") for n in range(3)),
        reply("all", "1"),
        reply("none", "1", "wrong"),
        *(reply("rare", str(n), "wrong" if n else "correct") for n in range(3)),
        reply("lost", "1"),
        reply("lost", "2", "unscored"),
    ]
    rows = [{"id": name} for name in ("mixed", "all", "none", "rare", "lost", "new")]
    assert [row["id"] for row in mixed_problems(replies, rows, hard=False)] == ["mixed", "rare"]
    assert [row["id"] for row in mixed_problems(replies, rows, hard=True)] == ["rare"]
