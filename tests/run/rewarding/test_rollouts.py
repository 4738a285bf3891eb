# SPDX-License-Identifier: Apache-2.0
"""Rollouts of a model in training: several turns, code and tools; what it did not write has no loss."""

from __future__ import annotations

import json
import math
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.recipes.test_trajectories import CHATML, model

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, EnvironmentFailedError
from newskills.benchmarks.agent_tasks import task_rows
from newskills.config.layers import Layer
from newskills.models.tokenizer import HFTokenizer
from newskills.prompts.code_tags import code_tags
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.policy import PolicyFormat, split_calls
from newskills.run.rewarding.questions import QuestionFormat, asking_of
from newskills.run.rewarding.reward import LengthPenalty, RewardConfig
from newskills.run.rewarding.rollouts import SolverRollouts, turn_rewards, with_code
from newskills.run.training.examples import examples_of
from newskills.run.training.skill import Skill, outputs_apart
from newskills.train.loops.samples import Rollout, SampledTurn
from newskills.train.loops.traces import traces
from newskills.train.verbs import Datum, Sampled, SamplingParams

ROWS = [{"id": str(n), "problem": f"{n} * 3", "expected_answer": str(3 * n)} for n in (5, 7)]
PARAMS = SamplingParams(max_tokens=400, temperature=1.0, seed=3)


class Scripted:
    """Writes what `reply` says to the text it reads, a token a byte, all of them with log-probability −1."""

    def __init__(self, skill: Skill, reply: Callable[[str, int], str]) -> None:
        self._skill, self._reply, self._asked = skill, reply, 0
        self.batches: list[int] = []

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        self.batches.append(len(prompts))
        groups = []
        for prompt in prompts:
            group = []
            for _ in range(num_samples):
                self._asked += 1
                tokens = self._skill.tokenizer.encode(
                    self._reply(self._skill.tokenizer.decode(prompt), self._asked)
                )
                tokens = [*tokens, *self._skill.stops]
                group.append(Sampled(tokens=tokens, logprobs=[-1.0] * len(tokens), stop_reason="stop"))
            groups.append(group)
        return groups


def folder_of(tmp_path: Path, template: str = CHATML, context: int = 4096) -> Path:
    folder = model(tmp_path / "model", template)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": context}))
    return folder


@contextmanager
def rolling(
    folder: Path, changes: dict[str, Any], context: int = 4096, prompt: str = "qwen/math-tir"
) -> Iterator[tuple[Skill, SolverRollouts]]:
    benchmark = Benchmark(name="mine", category="", title="mine", prompt=prompt)
    asking = asking_of(benchmark, folder / "rows.jsonl", str(folder), [Layer("test", changes)])
    skill = Skill(folder, asking)
    form = PolicyFormat(tokenizer=skill.tokenizer, stops=skill.stops, context=context)
    with SolverRollouts(asking, form) as rollouts:
        yield skill, rollouts


def learnt(skill: Skill, datum: Datum) -> list[str]:
    """The runs of targets that the loss counts, as text."""
    runs: list[list[int]] = [[]]
    for target, advantage in zip(datum.targets, datum.advantages or (), strict=True):
        if advantage:
            runs[-1].append(target)
        elif runs[-1]:
            runs.append([])
    return [skill.tokenizer.decode(run) for run in runs if run]


def programmer(prompt: str, _: int) -> str:
    shown = re.search(r"```output\n(\d+)\n```\n$", prompt)
    number = re.findall(r"(\d+) \* 3", prompt)[-1]
    return f"So \\boxed{{{shown[1]}}}." if shown else f"```python\nprint({number} * 3)\n```\n```output\n999\n```\n"


def test_the_output_of_code_is_read_but_never_learnt(tmp_path: Path) -> None:
    with rolling(folder_of(tmp_path), with_code("qwen", 2, 400)) as (skill, rollouts):
        client = Scripted(skill, programmer)
        groups = rollouts(client, [skill.problem(row) for row in ROWS], 2, PARAMS)
    assert client.batches == [4, 4]
    for row, group in zip(ROWS, groups, strict=True):
        for rollout in group:
            (trace,) = traces(rollout, [1.0] * len(rollout.turns))
            number = row["problem"].split()[0]
            code = f"```python\nprint({number} * 3)\n```\n"
            answer = f"So \\boxed{{{row['expected_answer']}}}."
            assert learnt(skill, trace.datum) == [code, f"{answer}<|im_end|>"]
            whole = skill.tokenizer.decode([*trace.datum.tokens, trace.datum.targets[-1]])
            assert whole.endswith(f"{code}```output\n{row['expected_answer']}\n```\n{answer}<|im_end|>")
            assert rollout.text == f"{code}```output\n{row['expected_answer']}\n```\n{answer}"
            assert "999" not in whole
            # The ids are those that were sampled, in their places.
            ids = [token for turn in rollout.turns for token in turn.sampled.tokens]
            assert [trace.datum.targets[place] for place in trace.written] == ids
            assert {(trace.datum.logprobs or ())[place] for place in trace.written} == {-1.0}


def test_texts_that_are_fine_tuned_on_are_masked_alike(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    row = {
        "input": "Q: 2*3? ",
        "output": "```python\nprint(6)\n```\n```output\n6\n```\nIt is ```output\n6.<|im_end|>",
    }
    skill = Skill(folder)
    (datum,) = examples_of([row], skill, Path("rows"), code_tags("qwen"))
    masked = Datum(tokens=datum.tokens, targets=datum.targets, advantages=datum.weights)
    assert learnt(skill, masked) == ["```python\nprint(6)\n```\n", "It is ```output\n6.<|im_end|>"]
    (plain,) = examples_of([row], skill, Path("rows"))
    assert plain.tokens == datum.tokens
    assert sum(plain.weights or ()) == len(row["output"]) - len("<|im_end|>") + 1
    assert outputs_apart("no code", code_tags("qwen")) == [("no code", 1.0)]


CALL = '<tool_call>{"name": "python__run", "arguments": %s}</tool_call>'


def tool_file(tmp_path: Path, body: str) -> str:
    path = tmp_path / "calculator.py"
    path.write_text(f"def add(left: int, right: int) -> str:\n    'Adds two numbers.'\n    {body}\n")
    return f"{path}::add"


def caller(prompt: str, asked: int) -> str:
    """Wrong arguments, then the right ones, written in a way of its own, then the answer."""
    if "<|im_start|>tool\n15" in prompt:
        return "It is \\boxed{15}."
    if "Error" in prompt:
        return 'Again. <tool_call>{"arguments":{"right":10,   "left":5},"name":"add"}</tool_call>'
    return "<tool_call>{no json</tool_call>"


def test_the_results_of_tools_are_read_but_never_learnt(tmp_path: Path) -> None:
    changes = {"tool_modules": [tool_file(tmp_path, "return str(left + right)")], "max_tool_calls": 4}
    with rolling(folder_of(tmp_path), changes, prompt="generic/math") as (skill, rollouts):
        rollouts.check(ROWS[0])
        ((rollout,),) = rollouts(Scripted(skill, caller), [skill.problem(ROWS[0])], 1, PARAMS)
    assert len(rollout.turns) == 3
    assert rollout.row["num_tool_calls"] == 2
    (trace,) = traces(rollout, [1.0, 1.0, 1.0])
    assert learnt(skill, trace.datum) == [
        "<tool_call>{no json</tool_call><|im_end|>",
        'Again. <tool_call>{"arguments":{"right":10,   "left":5},"name":"add"}</tool_call><|im_end|>',
        "It is \\boxed{15}.<|im_end|>",
    ]
    whole = skill.tokenizer.decode([*trace.datum.tokens, trace.datum.targets[-1]])
    assert whole.count("<|im_start|>tool\n") == 2
    assert "<|im_end|>\n<|im_start|>tool\n15<|im_end|>\n<|im_start|>assistant\nIt is" in whole


def test_a_template_that_shows_earlier_turns_differently_makes_further_sequences(tmp_path: Path) -> None:
    first, second = SampledTurn([1, 2], sampled(3, 4)), SampledTurn([1, 2, 9, 5], sampled(6))
    rollout = Rollout(turns=[first, second], row={}, text="", finish_reason="stop")
    made = traces(rollout, [0.5, 2.0])
    assert [(list(one.datum.tokens), list(one.datum.targets)) for one in made] == [
        ([1, 2, 3], [2, 3, 4]),
        ([1, 2, 9, 5], [2, 9, 5, 6]),
    ]
    assert [one.datum.advantages for one in made] == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0, 2.0]]


def sampled(*tokens: int) -> Sampled:
    return Sampled(tokens=list(tokens), logprobs=[-1.0] * len(tokens), stop_reason="stop")


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (CHATML.replace("{% if tools %}", "{% if false %}"), "does not tell the model of its tools"),
        (
            CHATML.replace("{% for m in messages %}", "{% for m in messages if m.role != 'tool' %}"),
            "results of tools",
        ),
    ],
)
def test_a_template_that_cannot_show_tools_is_told_before_training(
    tmp_path: Path, template: str, said: str
) -> None:
    changes = {"tool_modules": [tool_file(tmp_path, "return '1'")]}
    with (
        rolling(folder_of(tmp_path, template), changes, prompt="generic/math") as (_, rollouts),
        pytest.raises(ConfigError, match=said),
    ):
        rollouts.check(ROWS[0])


def test_a_tool_that_answers_a_megabyte_ends_the_rollout_and_nothing_else(tmp_path: Path) -> None:
    changes = {"tool_modules": [tool_file(tmp_path, "return 'x' * (1 << 20)")], "max_tool_calls": 4}
    with rolling(folder_of(tmp_path), changes, prompt="generic/math") as (skill, rollouts):
        client = Scripted(skill, lambda _, n: CALL.replace("python__run", "add") % '{"left": 1, "right": 2}')
        ((rollout,),) = rollouts(client, [skill.problem(ROWS[0])], 1, PARAMS)
    assert (rollout.finish_reason, len(rollout.turns), rollout.lost) == ("length", 1, "")


def test_a_tool_that_never_answers_loses_its_rollout(tmp_path: Path) -> None:
    changes = {"tool_modules": [tool_file(tmp_path, "__import__('time').sleep(3)")], "max_tool_calls": 4}
    benchmark = Benchmark(name="mine", category="", title="mine", prompt="generic/math")
    folder = folder_of(tmp_path)
    asking = asking_of(benchmark, folder / "rows.jsonl", str(folder), [Layer("test", changes)])
    skill = Skill(folder, asking)
    form = PolicyFormat(tokenizer=skill.tokenizer, stops=skill.stops, context=4096)

    def reply(prompt: str, asked: int) -> str:
        return "42" if "7 * 3" in prompt else CALL.replace("python__run", "add") % '{"left": 1, "right": 2}'

    with SolverRollouts(asking, form, patience=0.2) as rollouts:
        groups = rollouts(Scripted(skill, reply), [skill.problem(row) for row in ROWS], 1, PARAMS)
    assert [bool(rollout.lost) for (rollout,) in groups] == [True, False]
    assert "no answer within 0.2 seconds" in groups[0][0].lost


def test_calls_are_read_without_trust() -> None:
    text, calls = split_calls('a <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call> b <tool_call>[1]')
    assert text == "a  b"
    assert [call["function"] for call in calls] == [
        {"name": "f", "arguments": '{"x":1}'},
        {"name": "unreadable", "arguments": "[1]"},
    ]


GATED = """
import asyncio
from newskills.base.records import Attempt, Request, Message
from newskills.solve.chat import ask

class Gated:
    at_once = 3

    def __init__(self, parts):
        self._chat, self._gate = parts.chat, asyncio.Semaphore(self.at_once)

    def request(self, sample):
        return self._chat.request(sample)

    async def solve(self, sample, request, kit):
        async with self._gate:
            reply = await ask(kit.models["main"], request)
            if "KeyError" in reply.text:
                {}["no such key"]
            return await self._chat.attempt(sample, request, reply, reply.text)
"""


def test_a_solver_that_takes_few_at_once_and_has_a_defect_is_trained_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "gated.py").write_text(GATED)
    changes = {"solver": f"{tmp_path / 'gated.py'}::Gated"}
    with rolling(folder_of(tmp_path), changes, prompt="generic/math") as (skill, rollouts):
        client = Scripted(skill, lambda prompt, _: "KeyError" if "5 * 3" in prompt else "21")
        groups = rollouts(client, [skill.problem(row) for row in ROWS], 4, PARAMS)
    assert client.batches == [3, 3, 2]
    assert {rollout.lost for rollout in groups[0]} == {"harness: KeyError: 'no such key'"}
    assert {(rollout.lost, rollout.text) for rollout in groups[1]} == {("", "21")}


SWALLOWS = """
from newskills.base.errors import NewskillsError
from newskills.solve.chat import ask

class Swallows:
    def __init__(self, parts):
        self._chat = parts.chat

    def request(self, sample):
        return self._chat.request(sample)

    async def solve(self, sample, request, kit):
        try:
            reply = await ask(kit.models["main"], request)
        except NewskillsError as error:
            raise RuntimeError("the environment failed") from error
        return await self._chat.attempt(sample, request, reply, reply.text)
"""


def test_what_ends_a_training_passes_through_any_solver(tmp_path: Path) -> None:
    """A sampler without memory, and a template that cannot show the conversation: nothing waits for ever."""

    class Full:
        def sample(self, *_: object) -> list[list[Sampled]]:
            raise MemoryError

    (tmp_path / "swallows.py").write_text(SWALLOWS)
    changes = {"solver": f"{tmp_path / 'swallows.py'}::Swallows"}
    with rolling(folder_of(tmp_path), changes, prompt="generic/math") as (skill, rollouts):
        problems = [skill.problem(row) for row in ROWS]
        with pytest.raises(MemoryError):
            rollouts(Full(), problems, 2, PARAMS)
        (tmp_path / "model/chat_template.jinja").write_text("{{ raise_exception('roles must alternate') }}")
        other = PolicyFormat(tokenizer=HFTokenizer(str(tmp_path / "model")), stops=skill.stops)
        with (
            SolverRollouts(asking_in(tmp_path, changes), other) as refused,
            pytest.raises(ConfigError, match="roles must alternate"),
        ):
            refused(Scripted(skill, lambda *_: ""), problems, 2, PARAMS)


def asking_in(tmp_path: Path, changes: dict[str, Any]) -> QuestionFormat:
    benchmark = Benchmark(name="mine", category="", title="mine", prompt="generic/math")
    return asking_of(benchmark, tmp_path / "rows.jsonl", str(tmp_path / "model"), [Layer("test", changes)])


def test_an_agent_works_in_a_session_of_the_sandbox_for_each_rollout(tmp_path: Path) -> None:
    """Two commands, then it submits: the patch is that of its own repository, and outputs are only read."""
    prepared = software_rows(tmp_path)

    def agent(prompt: str, asked: int) -> str:
        shown = prompt.rpartition("<|im_start|>user")[2]
        if "old text" in shown:
            return f"```bash\necho {asked} > new.txt; echo SUBMIT_CHANGES\n```"
        return "```bash\ncat old.txt\n```"

    changes = {"agent": "bash", "environment.engine": "sandbox", "agent_max_turns": 4, "environment.at_once": 2}
    folder = folder_of(tmp_path, CHATML.replace("{% if tools %}", "{% if false %}"), context=20000)
    with rolling(folder, changes, context=20000, prompt="agents/bash") as (skill, rollouts):
        client = Scripted(skill, agent)
        ((first, second, third),) = rollouts(client, [skill.problem(prepared)], 3, PARAMS)
    assert client.batches == [2, 2, 1, 1]
    assert not any(rollout.lost for rollout in (first, second, third))
    assert [rollout.row["exit_status"] for rollout in (first, second, third)] == ["submitted"] * 3
    assert len({rollout.row["model_patch"] for rollout in (first, second, third)}) == 3
    assert "+++ b/new.txt" in first.row["model_patch"]
    (trace,) = traces(first, [1.0, 1.0])
    runs = learnt(skill, trace.datum)
    assert runs[0] == "```bash\ncat old.txt\n```<|im_end|>"
    assert runs[1].endswith("echo SUBMIT_CHANGES\n```<|im_end|>")
    assert not Path("unfinished-rollouts").exists()


def software_rows(tmp_path: Path) -> dict[str, Any]:
    task = tmp_path / "tasks/task-1"
    for name, text in (
        ("task.yaml", "image: none\ntest_command: test -f new.txt\n"),
        ("issue.md", "The file new.txt is missing."),
        ("repository/old.txt", "old text\n"),
        ("tests/tests/mark", "here\n"),
        ("solution.patch", "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n"),
    ):
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    return next(task_rows(tmp_path / "tasks"))


def test_a_sandbox_that_dies_makes_no_answer_wrong_and_is_there_again(tmp_path: Path) -> None:
    def half(prompt: str, asked: int) -> str:
        return programmer(prompt, asked) if "5 * 3" in prompt else "So \\boxed{21}."

    class Killer(Scripted):
        def sample(
            self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
        ) -> list[list[Sampled]]:
            if not self.batches:
                kill_sandbox()
            return super().sample(prompts, num_samples, params)

    with rolling(folder_of(tmp_path), with_code("qwen", 2, 400)) as (skill, rollouts):
        problems = [skill.problem(row) for row in ROWS]
        # Where nothing else is left of a step, it is done again, with the same samples.
        (whole,) = rollouts(Killer(skill, programmer), problems[:1], 2, PARAMS)
        hit, spared = rollouts(Killer(skill, half), problems, 2, PARAMS)
    assert [(rollout.lost, rollout.text[-12:]) for rollout in whole] == [("", " \\boxed{15}.")] * 2
    assert all(rollout.lost.startswith("sandbox: ") or "\\boxed{15}" in rollout.text for rollout in hit)
    assert [(rollout.lost, rollout.text) for rollout in spared] == [("", "So \\boxed{21}.")] * 2


def kill_sandbox() -> None:
    """The process of this one's sandbox, as the kernel ends it where memory runs out."""
    children = [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
    (sandbox,) = [pid for pid in children if b"newskills_sandbox" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(int(sandbox), signal.SIGKILL)


def test_rewards_of_turns_stand_where_the_environment_gave_them() -> None:
    aligned = {"steps": [{"reward": 0.5}, {"reward": None}, {"reward": 1}]}
    assert turn_rewards(aligned, 3) == [0.5, 0.0, 1.0]
    named = {"steps": [{"turn": 1, "reward": 0.5}, {"turn": 3, "reward": 1.0}]}
    assert turn_rewards(named, 4) == [0.0, 0.5, 0.0, 1.0]
    assert turn_rewards({"steps": [{"reward": 1.0}]}, 3) == []
    assert turn_rewards({"steps": [{"command": "ls"}]}, 1) == []
    with pytest.raises(EnvironmentFailedError, match="the reward nan, which is not a number"):
        turn_rewards({"steps": [{"reward": math.nan}]}, 1)


def test_an_environments_reward_is_the_reward_and_its_tokens_those_of_all_turns() -> None:
    """Partial rewards count; lengths are those that the model wrote, whatever it was shown."""
    rows: list[dict[str, Any]] = [
        {"reward": 0.25, "num_generated_tokens": 1500},
        {"reward": None, "num_generated_tokens": 10},
    ]
    config = RewardConfig(length=LengthPenalty(penalty=0.1, free=0.5, unit="tokens"))
    with BatchGrader("environment_reward", {}) as verdict:
        partial, unfinished = verdict.reward(config, record=None)([(row, "x", "stop") for row in rows])
        plain, *_ = verdict.reward(RewardConfig(value=False), record=None)([(rows[0], "x", "stop")])
    assert partial.components == {"verdict": 0.25, "length": pytest.approx(-0.1)}
    assert (unfinished.reward, unfinished.outcome) == (0.0, "no_answer")
    assert plain.reward == 0.0


def test_players_that_take_turns_each_go_on_from_their_own_tokens() -> None:
    """Two conversations in one rollout are two sequences, in the ids that were sampled."""
    turns = [
        SampledTurn([1, 2], sampled(3)),
        SampledTurn([7, 8], sampled(9)),
        SampledTurn([1, 2, 3, 4], sampled(5)),
        SampledTurn([7, 8, 9, 6], sampled(2)),
    ]
    made = traces(Rollout(turns=turns, row={}, text="", finish_reason="stop"), [1.0, 2.0, 3.0, 4.0])
    assert [[*one.datum.tokens, one.datum.targets[-1]] for one in made] == [[1, 2, 3, 4, 5], [7, 8, 9, 6, 2]]
    assert [one.datum.advantages for one in made] == [[0.0, 1.0, 0.0, 3.0], [0.0, 2.0, 0.0, 4.0]]
