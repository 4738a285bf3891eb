# SPDX-License-Identifier: Apache-2.0
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.conftest import FakeServerFactory
from tests.graders.math.cases import pairs
from tests.run.executing import NAME, Mirror, serving
from tests.run.math_rewards import MATH_RL
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Script

from newskills.base.errors import ConfigError, SandboxError, UnknownNameError
from newskills.base.records import Row
from newskills.models.config import ServerConfig
from newskills.run.grade import grade_rows
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.reward import FormatReward, JudgeReward, OverlongPenalty, RewardConfig
from newskills.run.training.skill import Skill
from newskills.sandbox.config import SandboxConfig

PAIRS = [*pairs("equal_cases.txt")[:60], *pairs("different_cases.txt")[:40]]
RECORDS = [
    {"expected_answer": gold, "generation": f"So \\boxed{{{pred}}}.", "finish_reason": "stop"}
    for pred, gold in PAIRS
]


def samples(records: list[Row]) -> list[tuple[Row, str, str]]:
    return [
        ({"expected_answer": record["expected_answer"]}, record["generation"], record["finish_reason"])
        for record in records
    ]


def children() -> set[int]:
    """Living processes below this one."""
    found = [os.getpid()]
    for parent in found:
        with suppress(FileNotFoundError, ProcessLookupError):  # it ends meanwhile
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                found += map(int, task.read_text().split())
    return set(found[1:])


def test_scores_and_rewards_are_those_of_grading_a_file() -> None:
    before = children()
    outcomes = [row["outcome"] for row in grade_rows([dict(row) for row in RECORDS], "math", {})]
    assert {"correct", "wrong"} <= set(outcomes)
    with BatchGrader("math", {}) as verdict:
        assert [one.outcome for one in verdict(RECORDS)] == outcomes
        rewards = verdict.reward(MATH_RL)(samples(RECORDS))
        assert [one.reward for one in rewards] == [1.1 if one == "correct" else -0.4 for one in outcomes]
        assert [one.outcome for one in rewards] == outcomes
    assert children() <= before


def test_code_runs_in_the_sandbox_a_few_at_a_time() -> None:
    box = Mirror()
    records = [
        {"expected_answer": f"print({n})" if n % 3 else "other", "generation": f"print({n})"} for n in range(300)
    ]
    with serving(box) as port, BatchGrader(NAME, {}, SandboxConfig(host="127.0.0.1", port=port)) as verdict:
        assert [one.outcome for one in verdict(records)] == ["correct" if n % 3 else "wrong" for n in range(300)]
        assert 1 < box.most <= 64
        box.flaky = {"print(1)"}
        assert verdict(records[1:2])[0].outcome == "correct"
        box.broken = True
        (lost,) = verdict.reward(RewardConfig(wrong=-1.0))([({"expected_answer": "x"}, "print(5)", "stop")])
        assert (lost.reward, lost.outcome) == (None, "unscored")
        assert "sandbox: " in lost.why
        assert "out of order" in lost.why
        box.broken = False
        assert verdict(records[1:2])[0].outcome == "correct"


def test_a_sandbox_that_is_not_there_is_told_before_anything_is_graded() -> None:
    with pytest.raises(SandboxError), BatchGrader(NAME, {}, SandboxConfig(host="127.0.0.1", port=1)):
        raise AssertionError
    with pytest.raises(UnknownNameError):
        BatchGrader("maths", {})
    with pytest.raises(ConfigError, match="no key 'digit'"):
        BatchGrader("math", {"digit": 3})


def test_outside_its_block_it_says_so() -> None:
    verdict = BatchGrader("math", {})
    with pytest.raises(ConfigError, match="inside its `with` block"):
        verdict(RECORDS)
    with verdict:
        assert verdict([]) == []
    with pytest.raises(ConfigError, match="inside its `with` block"):
        verdict.reward(RewardConfig())


def test_the_sandbox_of_this_machine_ends_with_the_verdicts() -> None:
    before = children()
    program = "def add(a, b):\n    return a + b\n"
    row = {
        "prompt": "Write add.",
        "test": "assert add(1, 2) == 3\n",
        "entry_point": "add",
        "language": "python",
    }
    with BatchGrader(NAME, {}, SandboxConfig(preload=())) as verdict:
        found = verdict(
            [
                {**row, "generation": f"{program}print(add(1, 2), end='')", "expected_answer": "3"},
                {**row, "generation": f"{program}print(add(1, 2), end='')", "expected_answer": "4"},
            ]
        )
        assert [one.outcome for one in found] == ["correct", "wrong"]
        assert children() - before
    assert children() <= before


def test_a_killed_sandbox_costs_no_reward() -> None:
    before = children()
    row = {"prompt": 'def f(x):\n    """twice x"""\n', "entry_point": "f"}
    row["test"] = "def check(candidate):\n    assert candidate(4) == 8\n"
    records = [
        {**row, "generation": f"```python\ndef f(x):\n    return x * {n}\n```", "finish_reason": "stop"}
        for n in (2, 3, 2)
    ]
    with BatchGrader("evalplus", {}, SandboxConfig(preload=())) as verdict:
        assert [one.outcome for one in verdict(records)] == ["correct", "wrong", "correct"]
        killed = 0
        for pid in children() - before:
            with suppress(ProcessLookupError):  # it goes with another one of them
                os.kill(pid, signal.SIGKILL)
                killed += 1
        assert killed
        assert [one.outcome for one in verdict(records)] == ["correct", "wrong", "correct"]
    deadline = time.monotonic() + 20
    while not children() <= before and time.monotonic() < deadline:
        time.sleep(0.1)  # on a busy machine, what was killed is still ending
    assert children() <= before


def test_a_killed_worker_costs_no_reward() -> None:
    with BatchGrader("math", {}) as verdict:
        verdict(RECORDS[:2])
        reward = verdict.reward(RewardConfig())
        kept = reward(samples(RECORDS))
        stop = threading.Event()
        workers = {
            pid for pid in children() if (Path(f"/proc/{pid}/stat").read_text().split()[3]) != str(os.getpid())
        }
        assert workers

        def kill() -> None:
            for pid in sorted(workers):
                os.kill(pid, signal.SIGKILL)
            stop.set()

        killer = threading.Timer(0.01, kill)
        killer.start()
        again = reward(samples(RECORDS * 5))
        killer.join()
        assert stop.is_set()
    differing = [one for one, usual in zip(again, kept * 5, strict=True) if one != usual]
    assert all(one.reward is None for one in differing)
    assert len(differing) <= len(workers)


def test_a_grader_that_fails_gives_no_reward() -> None:
    texts = ["0", "not a number", "0.0"]
    with BatchGrader("tests.run.sleeping::Sleeping", {}) as verdict:
        found = verdict.reward(RewardConfig(wrong=-1.0))([({}, text, "stop") for text in texts])
    assert [one.reward for one in found] == [1.0, None, 1.0]
    assert found[1].why.startswith("grader: ValueError: could not convert string")


def test_many_threads_share_one_grader() -> None:
    found = {}
    with BatchGrader("math", {}) as verdict:
        reward = verdict.reward(MATH_RL)

        def work(number: int) -> None:
            found[number] = reward(samples(RECORDS[number::4]))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[n] for n in range(4)] == [reward(samples(RECORDS[n::4])) for n in range(4)]


def test_a_hostile_text_cannot_hold_up_a_pattern() -> None:
    config = RewardConfig(format=FormatReward(pattern=r"(a+)+b", pattern_bonus=0.5))
    with BatchGrader("math", {}) as verdict:
        fine, bare, lost = verdict.reward(config)(
            [({"expected_answer": "4"}, text, "stop") for text in (r"aab \boxed{4}", r"\boxed{4}", "a" * 60)]
        )
    assert (fine.reward, fine.components) == (1.5, {"verdict": 1.0, "pattern": 0.5})
    assert bare.reward == 1.0
    assert lost.reward is None
    assert "the pattern" in lost.why


def test_tokens_are_counted_where_they_count(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="no torch here: pip install 'newskills[train]'")
    from tests.train.tiny import tiny_folder, with_tokenizer

    skill = Skill(with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=1)))
    config = RewardConfig(overlong=OverlongPenalty(max_tokens=8, buffer=4))
    with BatchGrader("exact", {}) as verdict:
        reward = skill.reward(verdict, config)
        texts = ["A", "A" * 6, "A" * 40]
        found = reward([({"expected_answer": "B"}, text, "stop") for text in texts])
    sizes = [len(skill.tokenizer.encode(text)) for text in texts]
    assert [one.reward for one in found] == [-min(1.0, max(0.0, (size - 4) / 4)) for size in sizes]
    assert sizes[0] < 4 < sizes[2]


MARKS = "Fine.\nLogic: 10\nCorrectness: 5\nClarity: 0"


def judged_by(server: FakeServer | FakeServerProcess, **more: Any) -> RewardConfig:
    return replace(
        MATH_RL,
        judge=JudgeReward(
            server=ServerConfig(model="judge", base_url=server.base_url, api_key="secret-key"), **more
        ),
    )


def test_a_model_marks_beside_the_grader(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="text", text=MARKS)))
    row = {"problem": "What is 2 + 2?", "expected_answer": "4"}
    with BatchGrader("math", {}) as verdict:
        (found,) = verdict.reward(judged_by(server))([(row, r"so \boxed{4}", "stop")])
    assert found.components == {"verdict": 0.5, "box": 0.05, "judge": 0.5 * 0.6}
    assert found.reward == pytest.approx(0.85)
    (asked,) = server.records
    for part in ("What is 2 + 2?", r"so \boxed{4}", "Clarity: …"):
        assert part in asked.prompt


def test_a_judge_that_fails_leaves_a_sample_without_reward(fake_server: FakeServerFactory) -> None:
    vague = fake_server(Script(answer=Answer(kind="text", text="It is good.")))
    with BatchGrader("math", {}) as verdict:
        (found,) = verdict.reward(judged_by(vague))([({"expected_answer": "4"}, r"\boxed{4}", "stop")])
        assert (found.reward, found.outcome) == (None, "unscored")
        assert found.why.startswith("judge: the judge's reply has none of the lines")
        broken = fake_server(Script(faults=(Fault(kind="status", status=500),)))
        (found,) = verdict.reward(judged_by(broken, tries=2))([({"expected_answer": "4"}, r"\boxed{4}", "stop")])
        assert found.reward is None
        assert found.why.startswith("provider: ")
        assert len(broken.records) == 2
