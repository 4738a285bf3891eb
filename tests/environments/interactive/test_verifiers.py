# SPDX-License-Identifier: Apache-2.0
"""Environments of the real package `verifiers`, from `ns prepare_data` to scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.server.script import Fault, Script

pytest.importorskip("verifiers", reason="no verifiers here: pip install -e '.[verifiers]'")

WORDS = """
import verifiers.v1 as vf

__all__ = ["Words"]


class WordData(vf.TaskData):
    answer: str


class WordTask(vf.Task[WordData]):
    async def setup(self, trace, runtime):
        if self.data.answer == "broken":
            raise RuntimeError("the word list is gone")

    @vf.reward(weight=1.0)
    async def reversed_word(self, trace) -> float:
        return float(trace.last_reply.strip() == self.data.answer)

    @vf.metric
    async def length(self, trace) -> float:
        return float(len(trace.last_reply))


class WordsConfig(vf.TasksetConfig):
    words: list[str] = ["house", "tree"]


class Words(vf.Taskset[WordTask, WordsConfig]):
    def load(self):
        for word in self.config.words:
            prompt = f"Reverse the word: {word}"
            data = WordData(name=word, prompt=prompt, system_prompt="Reply with one word.", answer=word[::-1])
            yield WordTask(data, self.config.task)
"""

TOOLS = """
import verifiers.v1 as vf

__all__ = ["Stock"]


class StockData(vf.TaskData):
    answer: str


class Prices(vf.Toolset[vf.ToolsetConfig]):
    TOOL_PREFIX = "shop"

    @vf.tool
    async def price(self, name: str) -> str:
        \"\"\"The price of a thing.

        Args:
            name: what it is called
        \"\"\"
        return {"lamp": "30", "desk": "95"}.get(name, "unknown")


class StockTask(vf.Task[StockData]):
    @classmethod
    def toolsets(cls, config):
        return [Prices(vf.ToolsetConfig())]

    @vf.reward
    async def right(self, trace) -> float:
        return float(self.data.answer in trace.last_reply)


class Stock(vf.Taskset[StockTask, vf.TasksetConfig]):
    def load(self):
        yield StockTask(StockData(name="lamp", prompt="What does the lamp cost?", answer="30"), self.config.task)


if __name__ == "__main__":
    Prices.run()
"""

GAME = """
import verifiers.v1 as vf

__all__ = ["Numbers", "NumbersEnv"]


class NumberData(vf.TaskData):
    secret: int


class NumberTask(vf.Task[NumberData]):
    pass


class NumbersConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()


class NumbersEnv(vf.Env[NumbersConfig]):
    async def run(self, task, agents):
        reward = 0.0
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            for _ in range(5):
                if segment.terminated:
                    break
                guess = int(segment.last_reply)
                if guess == task.data.secret:
                    reward = 1.0
                    break
                segment = await interaction.turn("higher" if guess < task.data.secret else "lower")
        interaction.trace.record_reward("found", reward, 1.0)


class Numbers(vf.Taskset[NumberTask, vf.TasksetConfig]):
    def load(self):
        yield NumberTask(NumberData(name="six", prompt="Guess a number from 1 to 8.", secret=6), self.config.task)
"""

PARITY = """
import verifiers.v1 as vf

__all__ = ["Parity"]


class ParityTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def even(self, trace) -> float:
        return float(len(trace.last_reply) % 2 == 0)


class Parity(vf.Taskset[ParityTask, vf.TasksetConfig]):
    def load(self):
        for word in ("house", "tree", "lamp", "door"):
            yield ParityTask(vf.TaskData(name=word, prompt=f"Reverse: {word}"), self.config.task)
"""


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a process that finds the environments of this file."""
    monkeypatch.setenv("NEWSKILLS_TEST_FORKSERVER", "0")
    folder = tmp_path / "installed"
    folder.mkdir()
    for name, text in (("words_env", WORDS), ("stock_env", TOOLS), ("numbers_env", GAME), ("parity_env", PARITY)):
        (folder / f"{name}.py").write_text(text)
    home = tmp_path / "home"
    home.mkdir()
    return {"PYTHONPATH": str(folder), "NEWSKILLS_DATA_DIR": str(tmp_path / "data"), "HOME": str(home)}


def evaluated(folder: Path, env: dict[str, str], name: str, url: str, *more: str) -> list[dict[str, Any]]:
    made = ns(f"ns prepare_data verifiers:{name}", cwd=folder, env=env)
    assert made.returncode == 0, made.stdout + made.stderr
    return run(folder, env, name, url, *more)


def run(folder: Path, env: dict[str, str], name: str, url: str, *more: str) -> list[dict[str, Any]]:
    line = (
        f"ns eval --benchmarks=verifiers:{name} --server_type=vllm --server_address={url} --model=fake "
        "--output_dir=results"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return rows_of(folder / f"results/eval-results/verifiers-{name.replace('_', '-')}/output.jsonl")


def asked(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def test_rewards_become_scores(tmp_path: Path, env: dict[str, str], fake_server: Any) -> None:
    server = fake_server(answer=lambda body: "esuoh" if "house" in asked(body) else "tree")
    right, wrong = evaluated(tmp_path, env, "words_env", server.base_url, "++inference.temperature=0.5")
    assert (right["id"], right["outcome"], right["reward"]) == ("house", "correct", 1.0)
    assert (wrong["id"], wrong["outcome"], wrong["reward"]) == ("tree", "wrong", 0.0)
    assert right["rewards"] == {"reversed_word": 1.0}
    assert right["environment_metrics"]["length"] == 5.0
    assert [message["role"] for message in right["conversation"]] == ["system", "user", "assistant"]
    assert right["num_generated_tokens"] > 0
    bodies = [record.body for record in server.records]
    assert {body["temperature"] for body in bodies} == {0.5}
    metrics = json.loads((tmp_path / "results/eval-results/verifiers-words-env/metrics.json").read_text())
    assert metrics["verifiers-words-env"]["pass@1"]["accuracy"] == 50.0
    run(tmp_path, env, "words_env", server.base_url, "++inference.temperature=0.5")
    assert len(server.records) == len(bodies)


def test_settings_of_the_taskset_and_an_environment_that_fails(
    tmp_path: Path, env: dict[str, str], fake_server: Any
) -> None:
    server = fake_server(answer=lambda body: "broken")
    words = '--taskset=words=["nekorb"]'
    made = ns("ns prepare_data verifiers:words_env", words, cwd=tmp_path, env=env)
    assert made.returncode == 0, made.stdout + made.stderr
    more = ("++server.enable_soft_fail=true", "--accept_lost=100")
    (record,) = run(tmp_path, env, "words_env", server.base_url, *more)
    assert (record["outcome"], record["outcome_cause"]) == ("unscored", "environment")
    assert "the word list is gone" in record["detailed_error"]
    assert server.records == []


def test_tools_of_the_environment(tmp_path: Path, env: dict[str, str], fake_server: Any) -> None:
    arguments = json.dumps({"name": "lamp"})
    call = {"id": "c1", "type": "function", "function": {"name": "shop_price", "arguments": arguments}}
    lost = {"id": "c0", "type": "function", "function": {"name": "cost", "arguments": "{}"}}
    script = Script(tool_turns=((lost,), (call,)), faults=(Fault(kind="status", status=503, first=1),))
    server = fake_server(script, answer=lambda body: f"It costs {asked(body)}.")
    (record,) = evaluated(tmp_path, env, "stock_env", server.base_url)
    roles = [message["role"] for message in record["conversation"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    told = [message["content"] for message in record["conversation"] if message["role"] == "tool"]
    assert told[0].startswith("Error: there is no tool 'cost'")
    assert told[1] == "30"
    assert (record["outcome"], record["num_turns"]) == ("correct", 3)


def test_an_environment_that_plays_the_user(tmp_path: Path, env: dict[str, str], fake_server: Any) -> None:
    guesses = {"Guess a number from 1 to 8.": "4", "higher": "6"}
    server = fake_server(answer=lambda body: guesses[asked(body)])
    (record,) = evaluated(tmp_path, env, "numbers_env", server.base_url)
    assert (record["outcome"], record["reward"], record["num_turns"]) == ("correct", 1.0, 2)
    assert [m["content"] for m in record["conversation"]] == ["Guess a number from 1 to 8.", "4", "higher", "6"]


def test_what_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    done = ns("ns prepare_data verifiers:no_such_env", cwd=tmp_path, env=env)
    assert done.returncode == 1
    assert "There is no environment 'no_such_env'" in " ".join((done.stdout + done.stderr).split())


@pytest.mark.local_model
def test_a_policy_is_rewarded_by_the_environment(tmp_path: Path, env: dict[str, str], small_model: Path) -> None:
    assert ns("ns prepare_data verifiers:parity_env", cwd=tmp_path, env=env).returncode == 0
    words = "--benchmark=verifiers:parity_env --split=test --allow_overlap --output_dir=out"
    line = f"ns grpo --model={small_model} {words}"
    small = (
        "++steps=2",
        "++batch_size=2",
        "++group_size=4",
        "++max_tokens=6",
        "++trainer.threads=1",
        "++held_out=0",
    )
    done = ns(line, *small, cwd=tmp_path, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    replies = [reply for row in rows_of(tmp_path / "out/samples.jsonl") for reply in row["responses"]]
    assert len(replies) == 16
    for reply in replies:
        assert reply["reward"] == float(len(reply["text"].strip()) % 2 == 0), reply
