# SPDX-License-Identifier: Apache-2.0
"""The trl trainer on a Llama of a few thousand parameters: the same record, numbers and errors as the cpu trainer."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.errors import ConfigError, DataError, TrainingError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.backends.cpu.weights import read_shape
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.evaluation import HeldOut
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems, grpo
from newskills.train.loops.rloo import RlooConfig
from newskills.train.loops.samples import Judged, Problem, Reward, Scorer
from newskills.train.loops.sft import SftConfig, example
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import EvalSettings, LoraSettings, TrainerSettings
from newskills.train.trainers import make_trainer
from newskills.train.verbs import Datum, Sampled, SamplingParams

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

END = VOCAB - 1
SETTINGS = TrainerSettings(lora=LoraSettings(rank=4, alpha=8, seed=3), dtype="float32", threads=1)
EXAMPLES = [example([1, 2, token], [token + 1, token + 2, END]) for token in range(3, 23)]
PROBLEMS = [Problem([1, 2, token], {"question": str(token), "level": token % 2}) for token in range(3, 12)]
SFT = SftConfig(steps=9, batch_size=4, learning_rate=0.02, save_every=4)
GRPO = GrpoConfig(steps=9, batch_size=3, group_size=4, learning_rate=0.02, max_tokens=3, save_every=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


def by_first(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
    return [Judged(float(len(text) % 7), correct=False, answer=text) for _, text, _ in samples]


def decode(tokens: Sequence[int]) -> str:
    return " ".join(map(str, tokens))


def scorer(reward: Reward = by_first) -> Scorer:
    return Scorer(reward, decode, [END])


def fine_tune(
    model: Path,
    path: Path,
    config: SftConfig = SFT,
    settings: TrainerSettings = SETTINGS,
    backend: str = "trl",
    examples: list[Datum] = EXAMPLES,
    **hooks: Any,
) -> bool:
    folder = TrainingFolder(path, {"steps": config.steps})
    trainer = make_trainer(backend, model, settings)
    try:
        return trainer.run(config, examples, folder, Hooks(**hooks))
    finally:
        folder.close()


def reinforce(
    model: Path,
    path: Path,
    config: GrpoConfig = GRPO,
    settings: TrainerSettings = SETTINGS,
    backend: str = "trl",
    reward: Reward = by_first,
    **hooks: Any,
) -> bool:
    folder = TrainingFolder(path, {"steps": config.steps})
    trainer = make_trainer(backend, model, settings)
    try:
        return trainer.run(config, RewardedProblems(PROBLEMS, scorer(reward)), folder, Hooks(**hooks))
    finally:
        folder.close()


def metrics(path: Path) -> list[Row]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in read_rows(path / "metrics.jsonl")]


def close(one: Path, other: Path, names: Iterable[str]) -> None:
    for mine, its in zip(metrics(one), metrics(other), strict=True):
        for name in names if mine["step"] else ():
            assert mine[name] == pytest.approx(its[name], rel=1e-3, abs=1e-5), (mine["step"], name)


def pairs_of(path: Path, step: int) -> Any:
    return load_file(path / f"checkpoint-{step:06d}" / "adapter_model.safetensors")


def alike(one: Path, other: Path, step: int, atol: float = 1e-4) -> None:
    mine, its = pairs_of(one, step), pairs_of(other, step)
    assert mine.keys() == its.keys()
    for name, value in mine.items():
        torch.testing.assert_close(value, its[name], rtol=1e-3, atol=atol)


def test_sft_gives_the_numbers_of_the_cpu_trainer(model: Path, tmp_path: Path) -> None:
    assert fine_tune(model, tmp_path / "trl")
    assert fine_tune(model, tmp_path / "cpu", backend="cpu")
    close(tmp_path / "trl", tmp_path / "cpu", ["loss", "grad_norm", "learning_rate", "tokens"])
    alike(tmp_path / "trl", tmp_path / "cpu", 9)
    names = [row["state_path"] for row in read_rows(tmp_path / "trl/checkpoints.jsonl")]
    assert names == ["checkpoint-000004", "checkpoint-000008", "checkpoint-000009"]
    assert sorted(one.name for one in (tmp_path / "trl").iterdir()) == sorted(
        [*names, "checkpoints.jsonl", "metrics.jsonl", "samples.jsonl", "settings.json"]
    )


class Replay(CpuTrainer):
    """Samples what another trainer has sampled."""

    recorded: dict[str, Any]
    end = END

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        groups = self.recorded[self.steps + 1]
        data = [example(prompt, tokens) for prompt, group in zip(prompts, groups, strict=True) for tokens in group]
        found = iter(self.logprobs(data, params.logprob_temperature))
        return [
            [
                Sampled(
                    tokens=tokens,
                    logprobs=next(found)[-len(tokens) :],
                    stop_reason="stop" if tokens[-1] == self.end else "length",
                )
                for tokens in group
            ]
            for group in groups
        ]


def recorded(path: Path, end: int | None = END) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for row in read_rows(path / "samples.jsonl"):
        group = [
            [*map(int, one["text"].split()), *([end] if one["stop_reason"] == "stop" else [])]
            for one in row["responses"]
        ]
        found.setdefault(row["step"], []).append(group)
    return found


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"kl": 0.3, "scale_by_std": False, "drop_cut_off": True},
        {"temperature": 0.7},
        {"temperature": 1.5},
        {"temperature": 0.7, "kl": 0.3},
        {"temperature": 0.7, "loss": "ppo"},
    ],
)
def test_grpo_gives_the_numbers_of_the_cpu_trainer(model: Path, tmp_path: Path, changed: dict[str, Any]) -> None:
    config = msgspec.structs.replace(GRPO, steps=3, max_tokens=12, learning_rate=0.005, **changed)
    assert reinforce(model, tmp_path / "trl", config)
    lora = LoraConfig(rank=4, alpha=8, seed=3)
    client = Replay(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
    client.recorded = recorded(tmp_path / "trl")
    folder = TrainingFolder(tmp_path / "cpu", {})
    assert grpo(client, PROBLEMS, config, folder, scorer())
    folder.close()
    close(tmp_path / "trl", tmp_path / "cpu", ["grad_norm", "reward", *(["kl"] if config.kl else ["loss"])])
    alike(tmp_path / "trl", tmp_path / "cpu", 3)
    rows = [list(read_rows(tmp_path / name / "samples.jsonl")) for name in ("trl", "cpu")]
    assert [[one["advantage"] for one in row["responses"]] for row in rows[0]] == [
        [one["advantage"] for one in row["responses"]] for row in rows[1]
    ]


def test_shuffled_rewards_and_a_minimum_of_signal(model: Path, tmp_path: Path) -> None:
    config = msgspec.structs.replace(GRPO, steps=2, max_tokens=6, control="shuffled")
    assert reinforce(model, tmp_path / "shuffled", config)
    responses = [one for row in read_rows(tmp_path / "shuffled/samples.jsonl") for one in row["responses"]]
    assert any((one["advantage"] > 0) is (one["reward"] == 0) for one in responses if one["advantage"])
    assert all(row["spread"] == row["groups_used"] / GRPO.batch_size for row in metrics(tmp_path / "shuffled"))
    with pytest.raises(ConfigError, match=r"which \+\+min_signal needs"):
        reinforce(model, tmp_path / "least", msgspec.structs.replace(GRPO, min_signal=0.3))


def test_rloo_gives_the_numbers_of_the_cpu_trainer(model: Path, tmp_path: Path) -> None:
    settings = {**msgspec.structs.asdict(GRPO), "steps": 3, "max_tokens": 12, "learning_rate": 0.005}
    config = RlooConfig(**settings)
    assert reinforce(model, tmp_path / "trl", config)
    lora = LoraConfig(rank=4, alpha=8, seed=3)
    client = Replay(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
    client.recorded = recorded(tmp_path / "trl")
    folder = TrainingFolder(tmp_path / "cpu", {})
    assert config.train(client, RewardedProblems(PROBLEMS, scorer()), folder, Hooks())
    folder.close()
    close(tmp_path / "trl", tmp_path / "cpu", ["grad_norm", "reward"])
    alike(tmp_path / "trl", tmp_path / "cpu", 3)
    rows = [list(read_rows(tmp_path / name / "samples.jsonl")) for name in ("trl", "cpu")]
    assert [[one["advantage"] for one in row["responses"]] for row in rows[0]] == [
        [one["advantage"] for one in row["responses"]] for row in rows[1]
    ]


KILLED = """
import sys
from pathlib import Path
from tests.train.backends.trl.test_trl_trainer import fine_tune, reinforce
train = {"sft": fine_tune, "grpo": reinforce}[sys.argv[1]]
train(Path(sys.argv[2]), Path(sys.argv[3]), on_step=lambda p: print(p.done, flush=True))
"""


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "train"), [("sft", fine_tune), ("grpo", reinforce)])
def test_kill_nine_in_the_middle_changes_nothing(
    model: Path, tmp_path: Path, name: str, train: Callable[..., bool]
) -> None:
    assert train(model, tmp_path / "whole")
    argv = [sys.executable, "-W", "ignore", "-c", KILLED, name, str(model), str(tmp_path / "killed")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.strip() == "6":
                os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert [row["step"] for row in read_rows(tmp_path / "killed/checkpoints.jsonl")] == [4]
    assert train(model, tmp_path / "killed")
    again, whole = metrics(tmp_path / "killed"), metrics(tmp_path / "whole")
    assert [row["step"] for row in again] == list(range(1, 10))
    for one, other in zip(again, whole, strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-8)
    texts = [(tmp_path / place / "samples.jsonl").read_text() for place in ("whole", "killed")]
    assert texts[0] == texts[1]
    before = (tmp_path / "killed/metrics.jsonl").read_text()
    assert train(model, tmp_path / "killed")
    assert (tmp_path / "killed/metrics.jsonl").read_text() == before


def test_what_cannot_be_graded_takes_no_part(model: Path, tmp_path: Path) -> None:
    def half_blind(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        return [Judged(None, correct=False) if at % 2 else one for at, one in enumerate(by_first(samples))]

    def blind(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        return [Judged(None, correct=False)] * len(samples)

    config = msgspec.structs.replace(GRPO, steps=1)
    assert reinforce(model, tmp_path / "half", config, reward=half_blind)
    assert metrics(tmp_path / "half")[0]["unscored"] == 6
    for group in read_rows(tmp_path / "half/samples.jsonl"):
        assert all(one["advantage"] == 0 for one in group["responses"] if one["reward"] is None)
    with pytest.raises(TrainingError, match="None of the samples could be graded"):
        reinforce(model, tmp_path / "blind", reward=blind)


def test_a_run_that_was_stopped_goes_on_and_keeps_its_best(model: Path, tmp_path: Path) -> None:
    asked, values = [], iter([0.1, 0.9, 0.5, 0.5])
    held_out = HeldOut(
        problems=PROBLEMS,
        scorer=scorer(lambda samples: [Judged(next(values), correct=True)] * len(samples)),
        settings=EvalSettings(every=2, max_tokens=2, batch_size=4, patience=2, samples=2),
    )
    assert not fine_tune(model, tmp_path, stop=lambda: asked.append(1) or len(asked) == 3, held_out=held_out)
    assert metrics(tmp_path)[-1]["step"] == 3
    assert fine_tune(model, tmp_path, held_out=held_out)
    last = list(read_rows(tmp_path / "checkpoints.jsonl"))[-1]
    assert (last["final"], last["step"], last["state_path"]) == (True, 6, "checkpoint-000002")


@pytest.mark.parametrize("weights", ["lora", "full"])
def test_a_run_that_gets_worse_ends_with_the_weights_that_it_began_with(
    model: Path, tmp_path: Path, weights: str
) -> None:
    values = iter([0.75, 0.5])
    held_out = HeldOut(
        problems=PROBLEMS,
        scorer=scorer(lambda samples: [Judged(next(values), correct=True)] * len(samples)),
        settings=EvalSettings(every=2, max_tokens=2),
    )
    settings = msgspec.structs.replace(SETTINGS, weights=weights)
    config = msgspec.structs.replace(GRPO, steps=2)
    assert reinforce(model, tmp_path / "run", config, settings, held_out=held_out)
    assert [row["eval_reward"] for row in metrics(tmp_path / "run") if "eval_reward" in row] == [0.75, 0.5]
    folder = TrainingFolder(tmp_path / "run", {"steps": 2})
    make_trainer("trl", model, settings).finish(folder, tmp_path / "model")
    folder.close()
    after, before = (load_file(path / "model.safetensors") for path in (tmp_path / "model", model))
    assert all(value.equal(after[name]) for name, value in before.items())


def worth(values: Sequence[float], returns: int) -> HeldOut:
    """Problems whose answers all are worth the next value at each evaluation."""
    left = iter(values)

    def reward(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        value = next(left)
        return [Judged(value, correct=True)] * len(samples)

    settings = EvalSettings(every=2, max_tokens=2, stop_worse=0.05, returns=returns)
    return HeldOut(problems=PROBLEMS, scorer=scorer(reward), settings=settings)


@pytest.mark.parametrize(
    ("values", "went_back"),
    [([0.5, 0.75, 0.25, 0.25, 0.5, 0.5], {6: 2}), ([0.5, 0.25, 0.25, 0.5, 0.75, 0.75], {4: 0})],
)
def test_a_run_that_does_harm_goes_back_as_on_cpu(
    model: Path, tmp_path: Path, values: list[float], went_back: dict[int, int]
) -> None:
    """To its best weights and moments, or to the initial ones; a run that is stopped then goes on alike."""
    trl, cpu, parts = (tmp_path / name for name in ("trl", "cpu", "parts"))
    assert fine_tune(model, trl, held_out=worth(values, 2))
    assert fine_tune(model, cpu, backend="cpu", held_out=worth(values, 2))
    assert {row["step"]: row["returned"] for row in metrics(trl) if "returned" in row} == went_back
    close(trl, cpu, ["loss", "grad_norm", "learning_rate"])
    alike(trl, cpu, 9)
    stops = iter([False] * 3 + [True])
    assert not fine_tune(model, parts, held_out=worth(values[:3], 2), stop=lambda: next(stops))
    assert fine_tune(model, parts, held_out=worth(values[3:], 2))
    assert metrics(parts) == metrics(trl)


def test_reinforcement_goes_back_too_but_not_all_weights(model: Path, tmp_path: Path) -> None:
    values = [0.75, 0.5, 0.5, 0.75]
    config = msgspec.structs.replace(GRPO, steps=5, schedule="constant")
    assert reinforce(model, tmp_path / "pairs", config, held_out=worth(values, 1))
    rates = [row["learning_rate"] for row in metrics(tmp_path / "pairs") if row["step"]]
    assert rates == pytest.approx([0.02, 0.02, 0.02, 0.02, 0.005])
    settings = msgspec.structs.replace(SETTINGS, weights="full")
    assert reinforce(model, tmp_path / "full", config, settings, held_out=worth(values, 1))
    assert metrics(tmp_path / "full")[-1]["step"] == 4


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "optimizer.pt"])
def test_a_checkpoint_that_was_cut_off_is_named(model: Path, tmp_path: Path, name: str) -> None:
    asked = []
    assert not fine_tune(model, tmp_path, stop=lambda: asked.append(1) or len(asked) == 2)
    damaged = tmp_path / "checkpoint-000002" / name
    os.truncate(damaged, damaged.stat().st_size // 2)
    with pytest.raises(DataError, match=f"{name} cannot be read"):
        fine_tune(model, tmp_path)


def test_a_checkpoint_of_divided_weights_is_not_taken_for_one_of_whole_ones(model: Path, tmp_path: Path) -> None:
    asked = []
    assert not fine_tune(model, tmp_path, stop=lambda: asked.append(1) or len(asked) == 2)
    (tmp_path / "checkpoint-000002/pytorch_model_fsdp.bin").touch()
    with pytest.raises(ConfigError, match=r"was written with \+\+trainer\.trl\.split=fsdp"):
        fine_tune(model, tmp_path)


def test_the_environment_is_left_as_it_was(model: Path, tmp_path: Path) -> None:
    before = dict(os.environ)
    fine_tune(model, tmp_path, config=msgspec.structs.replace(SFT, steps=1))
    assert dict(os.environ) == before


def test_measuring_changes_nothing_of_the_training(model: Path, tmp_path: Path) -> None:
    settings = EvalSettings(every=1, max_tokens=2, temperature=1.0)
    held_out = HeldOut(problems=PROBLEMS, scorer=scorer(), settings=settings)
    config = msgspec.structs.replace(GRPO, steps=2)
    assert reinforce(model, tmp_path / "measured", config, held_out=held_out)
    assert reinforce(model, tmp_path / "plain", config)
    texts = [(tmp_path / name / "samples.jsonl").read_text() for name in ("measured", "plain")]
    assert texts[0] == texts[1]
    assert all("eval_reward" in row for row in metrics(tmp_path / "measured"))


def test_all_weights_packed_and_in_small_parts(model: Path, tmp_path: Path) -> None:
    trl = TrlSettings(micro_batch_size=1, packing=True, packed_length=24, gradient_checkpointing=True)
    settings = TrainerSettings(weights="full", trl=trl, dtype="float32", threads=1)
    config = SftConfig(steps=6, batch_size=2, learning_rate=0.01, save_every=0)
    assert fine_tune(model, tmp_path / "run", config, settings)
    losses = [row["loss"] for row in metrics(tmp_path / "run")]
    assert losses[-1] < losses[0]
    folder = TrainingFolder(tmp_path / "run", {"steps": 6})
    make_trainer("trl", model, settings).finish(folder, tmp_path / "final")
    folder.close()
    before, after = load_file(model / "model.safetensors"), load_file(tmp_path / "final/model.safetensors")
    assert all(not value.equal(before[name]) for name, value in after.items())
    assert (tmp_path / "final/chat_template.jinja").read_text() == (model / "chat_template.jinja").read_text()
    assert read_shape(tmp_path / "final").hidden_size == 32


@pytest.mark.nightly
def test_paged_sampling_goes_on_to_the_same_samples(model: Path, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, trl=TrlSettings(sampler="paged"))
    config = msgspec.structs.replace(GRPO, steps=2)
    assert reinforce(model, tmp_path / "whole", config, settings)
    assert not reinforce(model, tmp_path / "halved", config, settings, stop=lambda: True)
    assert reinforce(model, tmp_path / "halved", config, settings)
    texts = [(tmp_path / name / "samples.jsonl").read_text() for name in ("whole", "halved")]
    assert texts[0] == texts[1]
    first, second = (
        [row["responses"] for row in read_rows(tmp_path / "whole/samples.jsonl")][at] for at in (0, 3)
    )
    assert [one["text"] for one in first] != [one["text"] for one in second]


def test_rloo_compares_a_sample_with_the_others_of_its_group(model: Path, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, trl=TrlSettings(algorithm="rloo"))
    config = msgspec.structs.replace(GRPO, steps=3, kl=0.05)
    assert reinforce(model, tmp_path, config, settings)
    rows = metrics(tmp_path)
    assert len(rows) == 3
    assert any(row["grad_norm"] > 0 for row in rows)
    assert all("kl" in row for row in rows)
    for row in read_rows(tmp_path / "samples.jsonl"):
        rewards = [response["reward"] for response in row["responses"]]
        for place, response in enumerate(row["responses"]):
            others = [reward for index, reward in enumerate(rewards) if index != place]
            assert response["advantage"] == pytest.approx(rewards[place] - sum(others) / len(others))


def test_several_updates_with_the_samples_of_a_step(model: Path, tmp_path: Path) -> None:
    config = msgspec.structs.replace(GRPO, steps=3, iterations=2, loss="ppo", save_every=1)
    assert reinforce(model, tmp_path, config)
    assert [row["step"] for row in metrics(tmp_path)] == [1, 2, 3]
    state = json.loads((tmp_path / "checkpoint-000003/trainer_state.json").read_text())
    assert state["global_step"] == 6


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (TrlSettings(sampler="vllm"), "sampler=vllm needs a GPU"),
        (TrlSettings(sampler="vllm_server"), "sampler=vllm_server needs a GPU"),
        (TrlSettings(micro_batch_size=5), "cannot be split evenly"),
    ],
)
def test_what_this_machine_cannot_do_is_said(
    model: Path, tmp_path: Path, settings: TrlSettings, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        reinforce(model, tmp_path, settings=msgspec.structs.replace(SETTINGS, trl=settings))


def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(model: Path, tmp_path: Path) -> None:
    config = msgspec.structs.replace(SFT, learning_rate=1e30, max_grad_norm=0.0, save_every=1)
    with pytest.raises(TrainingError, match=r"The (loss|gradient) of step \d is (nan|inf)"):
        fine_tune(model, tmp_path, config)
    for row in read_rows(tmp_path / "checkpoints.jsonl"):
        for value in load_file(tmp_path / row["state_path"] / "adapter_model.safetensors").values():
            assert torch.isfinite(value).all()


@pytest.mark.parametrize("weights", ["lora", "full"])
def test_weights_that_the_last_step_spoils_are_no_checkpoint(model: Path, tmp_path: Path, weights: str) -> None:
    config = msgspec.structs.replace(
        SFT, steps=1, learning_rate=float("inf"), max_grad_norm=0.0, schedule="constant"
    )
    settings = msgspec.structs.replace(SETTINGS, weights=weights)
    with pytest.raises(TrainingError, match=r"checkpoint-000001 is not written: \d+ of \d+ tensors"):
        fine_tune(model, tmp_path, config, settings)
    assert not list(tmp_path.glob("checkpoint-*"))
    assert not list(read_rows(tmp_path / "checkpoints.jsonl"))


def test_memory_that_runs_out_says_what_to_lower(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"out of memory; .* Lower \+\+trainer.trl.micro_batch_size"):
        fine_tune(model, tmp_path, on_step=lambda _: torch.empty(1 << 55))


def test_examples_that_do_not_fit(model: Path, tmp_path: Path) -> None:
    long = example([1] * 40, [2] * 40)
    with pytest.raises(DataError, match="1 of 21 examples are longer than 64 tokens; the longest has 80"):
        fine_tune(model, tmp_path / "a", examples=[*EXAMPLES, long])
    with pytest.raises(DataError, match="context is 64"):
        reinforce(model, tmp_path / "b", msgspec.structs.replace(GRPO, max_tokens=80))
    with pytest.raises(DataError, match="nothing to train on"):
        fine_tune(model, tmp_path / "c", examples=[])
