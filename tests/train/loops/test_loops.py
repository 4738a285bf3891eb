# SPDX-License-Identifier: Apache-2.0
import json
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.train.tiny import tiny_folder

from newskills.base.errors import ConfigError, DataError, TrainingError, UnknownNameError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.loops.evaluation import HeldOut, kept_apart, stalled
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.groups import Group, advantages_of, measured
from newskills.train.loops.grpo import GrpoConfig, grpo
from newskills.train.loops.samples import Judged, Problem, Reward, Rollout, SampledTurn, Scorer
from newskills.train.loops.schedule import batch_at, rate_at, steps_of
from newskills.train.loops.sft import SftConfig, example, sft
from newskills.train.loops.stepping import Hooks, TimeLimit
from newskills.train.settings import EvalSettings, LoraSettings, TrainerSettings
from newskills.train.trainers import make_trainer
from newskills.train.verbs import Sampled

SMALL = CpuTrainerConfig(lora=LoraConfig(rank=4, alpha=8), dtype="float32", threads=1)
EXAMPLES = [example([1, 2, token], [token + 1, token + 2, 0]) for token in range(3, 23)]
SFT = SftConfig(steps=12, batch_size=4, learning_rate=0.02, save_every=5)
GRPO = GrpoConfig(steps=12, batch_size=3, group_size=8, learning_rate=0.05, max_tokens=3, save_every=5)
PROBLEMS = [Problem([1, 2, token], {"question": str(token), "expected_answer": "7"}) for token in range(3, 12)]
UNTIMED = ("seconds",)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny")


def sevens(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
    """Right if the first token is 7."""
    return [Judged(float(text.startswith("7")), text.startswith("7"), text) for _, text, _ in samples]


def one_in_two(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
    return [Judged(float(number % 2), correct=bool(number % 2)) for number in range(len(samples))]


def decode(tokens: Sequence[int]) -> str:
    return " ".join(map(str, tokens))


def fine_tune(model: Path, path: Path, config: SftConfig = SFT, **more: Any) -> bool:
    folder = TrainingFolder(path, {"steps": config.steps})
    try:
        return sft(CpuTrainer(model, SMALL), EXAMPLES, config, folder, Hooks(**more))
    finally:
        folder.close()


def reinforce(model: Path, path: Path, config: GrpoConfig = GRPO, reward: Reward = sevens, **more: Any) -> bool:
    folder = TrainingFolder(path, {"steps": config.steps})
    try:
        return grpo(CpuTrainer(model, SMALL), PROBLEMS, config, folder, Scorer(reward, decode, [0]), Hooks(**more))
    finally:
        folder.close()


def metrics(path: Path) -> list[Row]:
    return [{k: v for k, v in row.items() if k not in UNTIMED} for row in read_rows(path / "metrics.jsonl")]


def test_sft_learns_and_keeps_its_record(model: Path, tmp_path: Path) -> None:
    told: list[Any] = []
    assert fine_tune(model, tmp_path, on_step=told.append)
    rows = metrics(tmp_path)
    assert [row["step"] for row in rows] == list(range(1, 13)) == [one.done for one in told]
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]
    assert rows[0]["learning_rate"] == 0.02
    assert rows[-1]["learning_rate"] == pytest.approx(0.02 / 12)
    checkpoints = list(read_rows(tmp_path / "checkpoints.jsonl"))
    assert [(row["step"], row["final"]) for row in checkpoints] == [(5, False), (10, False), (12, True)]
    assert json.loads((tmp_path / "checkpoint-000012/adapter_config.json").read_text())["r"] == 4
    before = (tmp_path / "metrics.jsonl").read_text()
    assert fine_tune(model, tmp_path)
    assert (tmp_path / "metrics.jsonl").read_text() == before


def test_grpo_learns_what_is_rewarded(model: Path, tmp_path: Path) -> None:
    assert reinforce(model, tmp_path)
    rows = metrics(tmp_path)
    assert rows[-1]["reward"] > rows[0]["reward"] + 0.3
    samples = list(read_rows(tmp_path / "samples.jsonl"))
    assert len(samples) == 12 * 3
    first = samples[0]["responses"]
    assert len(first) == 8
    assert sum(one["advantage"] for one in first) == pytest.approx(0, abs=1e-6)
    assert {one["reward"] for one in first} <= {0.0, 1.0}


@pytest.mark.parametrize("train", [fine_tune, reinforce])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    model: Path, tmp_path: Path, train: Callable[..., bool]
) -> None:
    assert train(model, tmp_path / "whole")
    asked = []
    assert not train(model, tmp_path / "halved", stop=lambda: asked.append(1) or len(asked) == 7)
    assert metrics(tmp_path / "halved")[-1]["step"] == 7
    assert train(model, tmp_path / "halved")
    assert metrics(tmp_path / "halved") == metrics(tmp_path / "whole")
    if train is reinforce:
        texts = [(tmp_path / name / "samples.jsonl").read_text() for name in ("whole", "halved")]
        assert texts[0] == texts[1]


KILLED = """
import sys
from pathlib import Path
from tests.train.loops.test_loops import fine_tune, reinforce
train = {"sft": fine_tune, "grpo": reinforce}[sys.argv[1]]
train(Path(sys.argv[2]), Path(sys.argv[3]), on_step=lambda p: print(p.done, flush=True))
"""


@pytest.mark.parametrize(
    ("name", "train"), [("sft", fine_tune), pytest.param("grpo", reinforce, marks=pytest.mark.nightly)]
)
def test_kill_nine_in_the_middle_changes_nothing(
    model: Path, tmp_path: Path, name: str, train: Callable[..., bool]
) -> None:
    assert train(model, tmp_path / "whole")
    argv = [sys.executable, "-c", KILLED, name, str(model), str(tmp_path / "killed")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.strip() == "8":
                os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert train(model, tmp_path / "killed")
    again, whole = metrics(tmp_path / "killed"), metrics(tmp_path / "whole")
    assert [row["step"] for row in again] == list(range(1, 13))
    for one, other in zip(again, whole, strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-8)


def test_what_cannot_be_graded_takes_no_part(model: Path, tmp_path: Path) -> None:
    def half_blind(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        return [Judged(None, correct=False) if index % 2 else one for index, one in enumerate(sevens(samples))]

    assert reinforce(model, tmp_path, GrpoConfig(**dict_of(GRPO, steps=1)), half_blind)
    row = metrics(tmp_path)[0]
    assert row["unscored"] == 12
    for group in read_rows(tmp_path / "samples.jsonl"):
        assert all(one["advantage"] == 0 for one in group["responses"] if one["reward"] is None)
    with pytest.raises(TrainingError, match="None of the samples could be graded"):
        reinforce(model, tmp_path / "blind", reward=lambda samples: [Judged(None, correct=False)] * len(samples))


def test_groups_that_teach_nothing_change_nothing(model: Path, tmp_path: Path) -> None:
    assert reinforce(
        model,
        tmp_path,
        GrpoConfig(**dict_of(GRPO, steps=1)),
        lambda samples: [Judged(1.0, correct=True)] * len(samples),
    )
    assert metrics(tmp_path)[0]["grad_norm"] == 0
    assert metrics(tmp_path)[0]["groups_used"] == 0


def test_a_folder_belongs_to_one_run(model: Path, tmp_path: Path) -> None:
    TrainingFolder(tmp_path, {"steps": 3, "model": "a"}).close()
    with pytest.raises(ConfigError, match="other settings: model, rank, steps"):
        TrainingFolder(tmp_path, {"steps": 4, "model": "b", "rank": 1})
    with pytest.raises(DataError, match="nothing to train on"):
        sft(CpuTrainer(model, SMALL), [], SFT, TrainingFolder(tmp_path / "other", {}))


@given(st.lists(st.one_of(st.none(), st.floats(-2, 2)), max_size=9), st.booleans())
def test_advantages(rewards: list[float | None], by_std: bool) -> None:
    found = advantages_of(rewards, by_std=by_std)
    known = [reward for reward in rewards if reward is not None]
    assert sum(found) == pytest.approx(0, abs=1e-6)
    if len(set(known)) < 2:
        assert found == [0.0] * len(rewards)
    for reward, advantage in zip(rewards, found, strict=True):
        assert advantage == 0 if reward is None else True
    if not by_std and len(set(known)) > 1:
        mean = sum(known) / len(known)
        assert found == pytest.approx([0.0 if one is None else one - mean for one in rewards], abs=1e-9)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 5))
def test_an_epoch_takes_each_item_at_most_once(count: int, size: int, seed: int) -> None:
    items = list(range(count))
    steps = steps_of(1, count, size)
    taken = Counter(item for step in range(steps) for item in batch_at(items, step, size, seed))
    assert max(taken.values()) == 1
    assert sum(taken.values()) == steps * min(size, count)
    assert batch_at(items, 3, size, seed) == batch_at(items, 3, size, seed)


def test_rates() -> None:
    assert [round(rate_at(step, 4, 1.0, "linear"), 2) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    assert [rate_at(step, 4, 1.0, "constant", 2) for step in range(4)] == [0.5, 1.0, 1.0, 1.0]
    assert rate_at(2, 4, 2.0, "cosine") == pytest.approx(1.0)


def dict_of(config: SftConfig | GrpoConfig, **changed: Any) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__struct_fields__} | changed


def held_out(reward: Reward, **settings: Any) -> HeldOut:
    return HeldOut(
        problems=PROBLEMS, scorer=Scorer(reward, decode, [0]), settings=EvalSettings(max_tokens=3, **settings)
    )


def test_held_out_problems_are_asked_on_the_way(model: Path, tmp_path: Path) -> None:
    asked = []

    def reward(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        asked.append(len(samples))
        return sevens(samples)

    assert fine_tune(model, tmp_path, held_out=held_out(reward, every=5, max_problems=5, batch_size=3, samples=2))
    found = {row["step"]: row["eval_reward"] for row in metrics(tmp_path) if "eval_reward" in row}
    assert list(found) == [0, 5, 10, 12]
    assert asked == [10] * 4
    assert [row["step"] for row in metrics(tmp_path)] == list(range(13))


def worth(values: Iterable[float | None]) -> Reward:
    """Every measurement finds the next value."""
    left = iter(values)
    return lambda samples: [Judged(value, correct=False) for value in [next(left)] for _ in samples]


def test_a_run_that_no_longer_gets_better_ends_with_its_best(model: Path, tmp_path: Path) -> None:
    held = held_out(worth([0.1, 0.2, 0.5, 0.5, 0.1]), every=2, patience=2)
    assert fine_tune(model, tmp_path, held_out=held)
    assert metrics(tmp_path)[-1]["step"] == 8
    last = list(read_rows(tmp_path / "checkpoints.jsonl"))[-1]
    assert (last["final"], last["step"], last["state_path"]) == (True, 8, "checkpoint-000006")
    assert fine_tune(model, tmp_path)


@pytest.mark.parametrize(
    ("values", "more", "state"),
    [
        ([0.1, 0.2, 0.6, 0.3], {}, "checkpoint-000008"),
        ([0.1, 0.2, 0.3, 0.4], {}, "checkpoint-000012"),
        ([0.4, 0.2, 0.3, 0.4], {}, "checkpoint-000012"),
        ([0.4, 0.2, 0.3, 0.1], {}, ""),
        ([0.4, 0.2, 0.3, 0.1], {"final": "last"}, "checkpoint-000012"),
    ],
)
def test_a_run_that_gets_worse_keeps_the_best_weights(
    model: Path, tmp_path: Path, values: list[float], more: dict[str, str], state: str
) -> None:
    """Those that it began with, where no step made them better."""
    assert reinforce(model, tmp_path / "run", held_out=held_out(worth(values), every=4, **more))
    folder = TrainingFolder(tmp_path / "run", {"steps": 12})
    assert (folder.finished, folder.last.state_path) == (True, state)
    assert folder.unchanged is (state == "")
    settings = TrainerSettings(lora=LoraSettings(rank=4, alpha=8), threads=1)
    make_trainer("cpu", model, settings).finish(folder, tmp_path / "model")
    before, after = (load_file(path / "model.safetensors") for path in (model, tmp_path / "model"))
    assert all(value.equal(after[name]) for name, value in before.items()) is (state == "")
    said = folder.verdict()
    folder.close()
    assert f"reward {values[0]:.3f} after step 0, {values[-1]:.3f} after step 12" in said
    assert ("worse than before" in said) is (values[-1] < values[0] and state != "checkpoint-000012")
    assert ("the initial model" in said) is (state == "")
    assert ("that of step 8 (0.600)" in said) is (state == "checkpoint-000008")


def test_what_is_measured_before_the_first_step_is_measured_once(model: Path, tmp_path: Path) -> None:
    asked = []

    def reward(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        asked.append(len(samples))
        return sevens(samples)

    stops = iter([True, False, False])
    more = {"held_out": held_out(reward, every=2, max_problems=3), "stop": lambda: next(stops)}
    config = msgspec.structs.replace(GRPO, steps=2)
    assert not reinforce(model, tmp_path, config, **more)
    assert reinforce(model, tmp_path, config, **more)
    assert asked == [3, 3]


def test_problems_to_measure_on_are_kept_apart() -> None:
    problems = [Problem([index % 250], {}) for index in range(300)]
    learnt, held = kept_apart(problems, 200)
    assert len(held) == 75
    assert not {one.prompt[0] for one in held} & {one.prompt[0] for one in learnt}
    assert {one.prompt[0] for one in held} | {one.prompt[0] for one in learnt} == set(range(250))
    assert len(kept_apart(problems, 25)[1]) == 25
    assert kept_apart(problems[:79], 200) == (problems[:79], [])
    assert kept_apart(problems, 0) == (problems, [])


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(0, 4))
def test_stalled(values: list[int], patience: int) -> None:
    scores = list(enumerate(values, 1))
    tail, before = values[len(values) - patience :], values[: len(values) - patience]
    expected = bool(patience and before and tail and max(tail) <= max(before))
    assert stalled(scores, patience) == (expected and len(values) > patience)


def test_a_time_limit_leaves_time_for_one_more_step(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 10.0, 14.0, 24.0, 28.0])
    monkeypatch.setattr("newskills.train.loops.stepping.time.monotonic", lambda: next(now))
    limit = TimeLimit(35.0)
    assert [limit() for _ in range(4)] == [False, False, False, True]


def test_the_cpu_trainer_says_what_it_lacks(model: Path) -> None:
    for changed in (
        {"weights": "full"},
        {"lora": LoraSettings(dropout=0.1)},
        {"lora": LoraSettings(targets=("q_proj",))},
    ):
        with pytest.raises(ConfigError, match="--backend=trl"):
            make_trainer("cpu", model, TrainerSettings(**changed))
    with pytest.raises(UnknownNameError, match="cpu"):
        make_trainer("cpus", model, TrainerSettings())


def test_a_divergence_holds_the_weights_back(model: Path, tmp_path: Path) -> None:
    last = {}
    for kl in (1e-9, 2.0):
        config = GrpoConfig(**dict_of(GRPO, kl=kl, learning_rate=0.02))
        assert reinforce(model, tmp_path / str(kl), config)
        found = [row["kl"] for row in metrics(tmp_path / str(kl))]
        assert found[0] == pytest.approx(0, abs=1e-6)
        last[kl] = found[-1]
    assert 0 < last[2.0] < 0.5 * last[1e-9]


def test_groups_that_teach_nothing_give_way_to_others(model: Path, tmp_path: Path) -> None:
    """Of the nine problems three tell samples apart."""
    asked = []

    def reward(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        asked.append(len(samples) // 8)
        return [
            Judged(float(at % 2 and int(row["question"]) % 3 == 0), correct=False)
            for at, (row, _, _) in enumerate(samples)
        ]

    one = GrpoConfig(**dict_of(GRPO, steps=1, seed=2))
    assert reinforce(model, tmp_path / "plain", one, reward)
    assert metrics(tmp_path / "plain")[0]["groups_used"] == 1
    assert asked == [3]
    assert reinforce(model, tmp_path / "again", GrpoConfig(**dict_of(one, resample=9)), reward)
    assert metrics(tmp_path / "again")[0]["groups_used"] == 3
    assert asked[1:3] == [3, 2]


def test_an_agent_s_limits_cut_off_as_that_of_tokens_does() -> None:
    reasons = ("length", "steps", "time", "cost", "stop", "submitted")
    rollouts = [Rollout(turns=(), row={}, text="", finish_reason=reason) for reason in reasons]
    assert [rollout.is_cut_off for rollout in rollouts] == [True, True, True, True, False, False]


def test_samples_that_were_cut_off_teach_nothing(model: Path, tmp_path: Path) -> None:
    config = GrpoConfig(**dict_of(GRPO, steps=1, max_tokens=1, drop_cut_off=True))
    assert reinforce(model, tmp_path, config)
    row = metrics(tmp_path)[0]
    assert row["cut_off"] > 0.8
    assert row["tokens"] < 8 * 3 * 3 * (1 - row["cut_off"]) + 3


def test_more_updates_with_the_same_samples_need_a_clipped_loss(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="clipped loss"):
        reinforce(model, tmp_path / "a", GrpoConfig(**dict_of(GRPO, iterations=2)))
    assert reinforce(model, tmp_path / "b", GrpoConfig(**dict_of(GRPO, steps=2, iterations=2, loss="ppo")))


def test_right_answers_are_told_apart_by_difficulty() -> None:
    def group(level: Any, *right: Any) -> Group:
        problem = Problem([1], {"level": level, "difficulty": None})
        judged = [Judged(None if one is None else float(one), correct=bool(one)) for one in right]
        turn = SampledTurn([1], Sampled(tokens=[1], logprobs=[0.0], stop_reason="stop"))
        rollout = Rollout(turns=[turn], row=problem.row, text="x", finish_reason="stop")
        return Group(problem, [rollout] * len(right), judged, [[0.0]] * len(right))

    found = measured([group("Level 5", True, False), group("Level 1", True, None), group("Level 5", False, False)])
    assert found["correct/level=Level 5"] == 0.25
    assert found["correct/level=Level 1"] == 1.0
    assert not any("difficulty" in name for name in found)


def test_memory_that_runs_out_is_told(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"out of memory; the last checkpoint is usable. Lower \+\+batch_size"):
        fine_tune(model, tmp_path, on_step=lambda _: torch.empty(1 << 55))


@pytest.mark.parametrize(("train", "usual"), [(fine_tune, SFT), (partial(reinforce, reward=one_in_two), GRPO)])
def test_weights_that_the_last_step_spoils_are_no_model(
    model: Path, tmp_path: Path, train: Callable[..., bool], usual: SftConfig | GrpoConfig
) -> None:
    config = msgspec.structs.replace(usual, steps=1, learning_rate=math.inf)
    with pytest.raises(
        TrainingError, match=r"Step 1 has made the weights unusable.*: \d+ of 28 tensors .* not finite"
    ):
        train(model, tmp_path, config)
    assert not list(read_rows(tmp_path / "checkpoints.jsonl"))
    assert not list(tmp_path.glob("checkpoint-*"))
