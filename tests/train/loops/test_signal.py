# SPDX-License-Identifier: Apache-2.0
"""The signal of a gradient: formulas, gradients of groups by autograd, groups that are added, shuffled rewards."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from tests.train.backends.trl.test_trl_trainer import END, GRPO, PROBLEMS, scorer
from tests.train.tiny import tiny_folder

from newskills.base.errors import ConfigError
from newskills.base.store import read_rows
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.loops.evaluation import HeldOut, Measured
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.groups import advantages_of, shuffled
from newskills.train.loops.grpo import GrpoConfig, grpo
from newskills.train.loops.remarks import flat_remark
from newskills.train.loops.sft import example
from newskills.train.loops.signal import (
    GradientMoments,
    StepSignal,
    estimates,
    groups_for,
    noise_scale,
    signal_of,
)
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import EvalSettings
from newskills.train.verbs import AdamParams, Datum

CONFIG = msgspec.structs.replace(GRPO, steps=8, batch_size=4, max_tokens=6, learning_rate=0.005)
DATA = [example([1, 2, token], [token + 1, token + 2, END]) for token in range(3, 11)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END)


def trainer(model: Path) -> CpuTrainer:
    lora = LoraConfig(rank=4, alpha=8, seed=3)
    client = CpuTrainer(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
    client.forward_backward(DATA, "cross_entropy")
    client.optim_step(AdamParams(learning_rate=0.01))
    return client


def run(model: Path, path: Path, config: GrpoConfig = CONFIG, **hooks: Any) -> list[dict[str, Any]]:
    folder = TrainingFolder(path, {})
    client = CpuTrainer(model, CpuTrainerConfig(lora=LoraConfig(rank=4, seed=3), dtype="float32", threads=1))
    try:
        grpo(client, PROBLEMS, config, folder, scorer(), Hooks(**hooks))
    finally:
        folder.close()
    return [
        {name: value for name, value in row.items() if name != "seconds"}
        for row in read_rows(path / "metrics.jsonl")
    ]


def test_estimates_are_those_of_the_formulas() -> None:
    # Two groups, gradients (4, 0) and (0, 2): the mean is (2, 1), the sample covariance has the trace 8 + 2.
    moments = GradientMoments(squares=(16 + 4) / 4, total=5.0, cosine=0.0)
    assert estimates([1, 1], moments) == pytest.approx((5 - 10 / 2, 10.0))


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [2, 3, 1]])
def test_estimates_have_no_bias(sizes: list[int]) -> None:
    draw, truth, groups = torch.Generator().manual_seed(0), torch.tensor([0.6, -0.8]), sum(sizes)
    both = []
    for _ in range(16000):
        gradients = truth + torch.randn(groups, 2, generator=draw) * 2
        added = torch.stack([part.sum(0) for part in gradients.split(sizes)]) / groups
        moments = GradientMoments(
            squares=added.square().sum().item(), total=added.sum(0).square().sum().item(), cosine=None
        )
        both.append(estimates(sizes, moments))
    gradient, noise = (sum(values) / len(both) for values in zip(*both, strict=True))
    assert gradient == pytest.approx(1.0, abs=0.15)
    assert noise == pytest.approx(8.0, abs=0.2)


def test_groups_for_a_signal() -> None:
    assert noise_scale([1.0, -0.5], [20.0, 30.0]) == 100
    assert noise_scale([1.0, -1.5], [20.0, 30.0]) == math.inf
    assert groups_for(0.5, 100.0) == 100
    assert signal_of(100, 100.0) == 0.5
    assert signal_of(8, math.inf) == 0
    assert groups_for(0.5, math.inf) == math.inf


def test_gradients_of_groups_add_up_and_are_measured(model: Path) -> None:
    parts = [DATA[:2], DATA[2:5], DATA[5:]]
    client, plain = trainer(model), trainer(model)
    output, moments = client.forward_backward_parts(parts, "cross_entropy")
    expected = plain.forward_backward(DATA, "cross_entropy")
    assert output.loss == pytest.approx(expected.loss, rel=1e-6)
    assert len(output.logprobs) == len(DATA)
    for name, value in client.named.items():
        torch.testing.assert_close(value.grad, plain.named[name].grad, rtol=1e-4, atol=1e-6)
    gradients = []
    for part in parts:
        alone = trainer(model)
        alone.forward_backward(part, "cross_entropy")
        gradients.append(
            torch.cat([value.grad.flatten() for value in alone.named.values() if value.grad is not None])
        )
    assert moments.squares == pytest.approx(sum(one.square().sum().item() for one in gradients), rel=1e-4)
    assert moments.total == pytest.approx(sum(gradients, torch.zeros(())).square().sum().item(), rel=1e-4)
    cosine = torch.cosine_similarity(gradients[0] + gradients[2], gradients[1], dim=0).item()
    assert moments.cosine == pytest.approx(cosine, abs=1e-4)


def test_kept_weights_are_compared_and_put_back(model: Path, tmp_path: Path) -> None:
    client = trainer(model)
    client.save_state(tmp_path / "kept")
    kept = client.logprobs(DATA)
    client.forward_backward(DATA, "cross_entropy")
    client.optim_step(AdamParams(learning_rate=0.01))
    now = client.logprobs(DATA)
    assert client.kept_logprobs(DATA, str(tmp_path / "kept")) == kept
    assert client.kept_logprobs(DATA, "") == client.reference_logprobs(DATA)
    assert client.logprobs(DATA) == now != kept


def test_every_step_is_measured(model: Path, tmp_path: Path) -> None:
    rows = run(model, tmp_path)
    assert len(rows) == CONFIG.steps
    assert rows[0]["kl_kept"] == pytest.approx(0.0, abs=1e-6)
    assert all(row["kl_kept"] > 1e-5 for row in rows[1:])
    for row in rows:
        assert 0 <= row["signal"] <= 1
        assert -1 <= row["halves_cosine"] <= 1
        assert row["spread"] == row["groups_used"] / 4
    pooled = noise_scale([row["gradient_square"] for row in rows], [row["gradient_variance"] for row in rows])
    assert rows[-1]["signal"] == pytest.approx(signal_of(4, pooled))


def test_the_kept_weights_are_the_best_of_the_evaluations(model: Path, tmp_path: Path) -> None:
    held_out = HeldOut(problems=PROBLEMS, scorer=scorer(), settings=EvalSettings(every=2, max_tokens=4))
    scores = iter([0.1, 0.5, 0.2, 0.9, 0.3])
    rows = run(
        model,
        tmp_path,
        held_out=held_out,
        measure=lambda *_: Measured(metrics={"eval_reward": next(scores), "eval_correct": 0.0}, rewards=[]),
    )
    gaps = {row["step"]: row["kl_kept"] for row in rows if "kl_kept" in row}
    assert gaps[1] == pytest.approx(0.0, abs=1e-6)
    assert gaps[2] > 1e-5
    assert gaps[3] == pytest.approx(0.0, abs=1e-6)  # the weights after step 2 are kept, and sampled from
    assert gaps[5] > gaps[4] > 1e-5
    assert gaps[7] == pytest.approx(0.0, abs=1e-6)


def test_groups_are_added_until_there_is_signal_and_a_run_that_goes_on_adds_the_same(
    model: Path, tmp_path: Path
) -> None:
    config, remarks = msgspec.structs.replace(CONFIG, min_signal=0.9, max_groups=10), list[str]()
    rows = run(model, tmp_path / "whole", config, remark=remarks.append)
    counts: dict[int, int] = {}
    for row in read_rows(tmp_path / "whole/samples.jsonl"):
        counts[row["step"]] = counts.get(row["step"], 0) + 1
    assert [counts[step] for step in range(1, 6)] == [4] * 5
    assert all(4 < counts[step] <= 10 for step in range(6, 9))
    assert remarks[0].startswith("signal 0.")
    assert "of 1: 4 groups are too few, taking " in remarks[0]
    stops = iter(range(100))
    run(model, tmp_path / "cut", config, stop=lambda: next(stops) == 6)
    assert run(model, tmp_path / "cut", config) == rows


def test_too_little_signal_is_told_once_with_what_would_help(model: Path, tmp_path: Path) -> None:
    remarks: list[str] = []
    told = StepSignal(CONFIG, TrainingFolder(tmp_path / "run", {}), remarks.append)
    for _ in range(2):
        told._tell_weak(5, 8, 100.0)
    assert remarks == [
        "signal 0.07 of 1: 8 groups are too few, about 43 would give 0.3. Set ++min_signal=0.3 (or a larger "
        "++batch_size); ++control=shuffled shows how much of a change is chance."
    ]


@pytest.mark.parametrize("scale", [94_495.0, math.inf])
def test_a_gradient_that_is_all_noise_is_told_as_that(tmp_path: Path, scale: float) -> None:
    remarks: list[str] = []
    with closing(TrainingFolder(tmp_path / "run", {})) as folder:
        StepSignal(CONFIG, folder, remarks.append)._tell_weak(5, 8, scale)
    assert remarks[0].startswith(
        "signal 0.00 of 1: 8 groups are too few; the gradient cannot be told from noise yet. Set ++min_signal=0.3"
    )


def test_a_weak_signal_of_groups_without_spread_is_told_as_that(tmp_path: Path) -> None:
    """More groups, all of whose samples are wrong, are no remedy; a few that differ teach hardly anything."""
    remarks: list[str] = []
    with closing(TrainingFolder(tmp_path / "run", {})) as folder:
        for step in range(1, 21):
            folder.metrics({"step": step, "spread": float(step in (3, 9)) / 8, "correct": 0.001})
        folder.write()
        StepSignal(CONFIG, folder, remarks.append)._tell_weak(5, 8, 100.0)
        assert not remarks
        told = flat_remark(folder, 20)
        assert "the rewards of only 1.2% of the groups differed (0% correct), so almost nothing was learnt" in told
        assert "fine-tune until a tenth of the samples is right" in told
        assert not flat_remark(folder, 19)
        for step in range(21, 41):
            folder.metrics({"step": step, "spread": 0.125, "correct": 0.02})
        folder.write()
        assert not flat_remark(folder, 40)


def test_a_trainer_that_cannot_measure_refuses_a_minimum(tmp_path: Path) -> None:
    class Plain:
        def logprobs(self, data: list[Datum]) -> list[list[float]]:
            return []

    config = msgspec.structs.replace(CONFIG, min_signal=0.3)
    with pytest.raises(ConfigError, match=r"which \+\+min_signal needs"):
        grpo(Plain(), PROBLEMS, config, TrainingFolder(tmp_path / "run", {}), scorer())


def test_shuffled_rewards_are_those_of_the_group_in_another_order(model: Path, tmp_path: Path) -> None:
    rewards = [1.0, 0.0, None, 1.0, 0.0, 0.0]
    mixed = shuffled(lambda values, _: advantages_of(values, by_std=False), 7)
    drawn = [mixed(rewards, ()) for _ in range(20)]
    assert all(sorted(values) == sorted(advantages_of(rewards, by_std=False)) for values in drawn)
    assert all(values[2] == 0 for values in drawn)
    assert len({tuple(values) for values in drawn}) > 3
    run(model, tmp_path, msgspec.structs.replace(CONFIG, steps=2, control="shuffled"))
    responses = [one for row in read_rows(tmp_path / "samples.jsonl") for one in row["responses"]]
    assert any((one["advantage"] > 0) is (one["reward"] == 0) for one in responses if one["advantage"])
