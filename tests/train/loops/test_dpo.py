# SPDX-License-Identifier: Apache-2.0
"""Direct preference optimisation: the loss by its formula, its gradient by autograd, resuming, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.train.preferences import DPO, END, PAIRS, metrics, prefer
from tests.train.tiny import tiny_folder

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import read_rows
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.loops.dpo import PairLogprobs, dpo, pair_loss
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.stepping import Hooks
from newskills.train.verbs import AdamParams, Datum, LossConfig, LossName, LossOutput

LOGPROBS = st.floats(-400, 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END)


@given(LOGPROBS, LOGPROBS, LOGPROBS, LOGPROBS, st.floats(0.01, 2))
def test_the_loss_is_the_papers_and_its_slope_is_what_autograd_finds(
    chosen: float, rejected: float, ref_chosen: float, ref_rejected: float, beta: float
) -> None:
    ours = pair_loss(PairLogprobs(chosen, rejected), PairLogprobs(ref_chosen, ref_rejected), beta)
    rewards = beta * torch.tensor([chosen - ref_chosen, rejected - ref_rejected], dtype=torch.float64)
    margin = (rewards[0] - rewards[1]).requires_grad_()
    loss = -torch.nn.functional.logsigmoid(margin)
    loss.backward()
    assert ours.loss == pytest.approx(loss.item(), rel=1e-9, abs=1e-12)
    assert margin.grad is not None
    assert ours.slope == pytest.approx(margin.grad.item(), rel=1e-9, abs=1e-12)
    assert [ours.chosen_reward, ours.rejected_reward] == pytest.approx(rewards.tolist())


def test_replies_that_are_preferred_become_likelier_than_those_that_are_not(model: Path, tmp_path: Path) -> None:
    assert prefer(model, tmp_path)
    rows = metrics(tmp_path)
    first = rows[0]["loss"] - DPO.sft_weight * rows[0]["nll"]
    assert first == pytest.approx(torch.log(torch.tensor(2.0)).item(), rel=1e-5)  # still the reference
    assert rows[0]["rewards/margins"] == pytest.approx(0, abs=1e-5)
    assert rows[-1]["rewards/margins"] > 0.5
    assert rows[-1]["rewards/accuracies"] == 1.0
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert all(row["tokens"] > 0 for row in rows)


class Recorder(CpuTrainer):
    """Keeps the gradient of each step."""

    gradients: list[dict[str, torch.Tensor]]

    def optim_step(self, adam: AdamParams) -> dict[str, float]:
        self.gradients.append(
            {name: value.grad.clone() for name, value in self.named.items() if value.grad is not None}
        )
        return super().optim_step(adam)


def test_two_passes_give_the_gradient_of_the_loss(model: Path, tmp_path: Path) -> None:
    lora = LoraConfig(rank=4, alpha=8, seed=3)
    client = Recorder(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
    client.gradients = []
    folder = TrainingFolder(tmp_path, {})
    config = msgspec.structs.replace(DPO, steps=3, batch_size=len(PAIRS), max_grad_norm=0.0, sft_weight=0.5)
    assert dpo(client, PAIRS, config, folder)
    folder.close()

    plain = CpuTrainer(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
    for step in range(3):
        loss, likelier, tokens = torch.zeros(()), torch.zeros(()), 0.0
        for pair in PAIRS:
            parts = []
            for datum in (pair.chosen, pair.rejected):
                own = plain._pass([datum], "cross_entropy", LossConfig())[0]
                weights = datum.weights or ()
                reference = plain.reference_logprobs([datum])[0]
                parts.append(-own - sum(weight * value for weight, value in zip(weights, reference, strict=True)))
                if datum is pair.chosen:
                    likelier, tokens = likelier + own, tokens + sum(weights)
            margin = config.beta * (parts[0] - parts[1])
            loss = loss - torch.nn.functional.logsigmoid(margin)
        (loss / len(PAIRS) + config.sft_weight * likelier / tokens).backward()
        for name, gradient in client.gradients[step].items():
            expected = plain.named[name].grad
            assert expected is not None
            torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-6)
        plain.optim_step(config.adam(step))


def test_the_sft_loss_keeps_the_chosen_replies_likely(model: Path, tmp_path: Path) -> None:
    """Without it, they may become unlikelier as long as the rejected ones do so faster."""
    chosen = []
    for weight in (0.0, 1.0):
        config = msgspec.structs.replace(DPO, sft_weight=weight)
        assert prefer(model, tmp_path / str(weight), config)
        last = metrics(tmp_path / str(weight))[-1]
        assert last["rewards/accuracies"] == 1.0
        chosen.append(last["rewards/chosen"])
    assert chosen[1] > chosen[0]


def test_a_run_that_was_stopped_goes_on_to_the_same_numbers(model: Path, tmp_path: Path) -> None:
    assert prefer(model, tmp_path / "whole")
    count = iter(range(100))
    assert not prefer(model, tmp_path / "cut", stop=lambda: next(count) == 5)
    assert prefer(model, tmp_path / "cut")
    assert metrics(tmp_path / "cut") == metrics(tmp_path / "whole")
    last = "checkpoint-000009/adapter_model.safetensors"
    one, other = load_file(tmp_path / "whole" / last), load_file(tmp_path / "cut" / last)
    assert all(torch.equal(value, other[name]) for name, value in one.items())


class Counting(CpuTrainer):
    """Counts the replies that the reference is asked about."""

    asked = 0

    def reference_logprobs(self, data: Sequence[Datum], temperature: float = 1.0) -> list[list[float]]:
        self.asked += len(data)
        return super().reference_logprobs(data, temperature)


def at_step(steps: Iterator[int], last: int) -> bool:
    return next(steps) == last


def test_the_reference_is_asked_once_per_pair(model: Path, tmp_path: Path) -> None:
    lora = LoraConfig(rank=4, alpha=8, seed=3)
    config = msgspec.structs.replace(DPO, steps=11, batch_size=len(PAIRS) // 5)  # two epochs and one batch
    for stops in (7, 11):
        client = Counting(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
        folder = TrainingFolder(tmp_path, {})
        dpo(client, PAIRS, config, folder, Hooks(stop=partial(at_step, iter(range(1, 100)), stops)))
        folder.close()
        assert client.asked == (2 * len(PAIRS) if stops == 7 else 0)
    pairs = [row["pair"] for row in read_rows(tmp_path / "reference.jsonl")]
    assert sorted(pairs) == list(range(len(PAIRS)))


class Unreferenced:
    """A trainer that cannot say what it was worth before."""

    def logprobs(self, data: list[Datum]) -> list[list[float]]:
        raise AssertionError("refused before")

    def forward_backward(self, data: list[Datum], loss: LossName, config: LossConfig | None = None) -> LossOutput:
        raise AssertionError("refused before")


def test_what_cannot_be_trained_is_refused(model: Path, tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path, {})
    client = CpuTrainer(model, CpuTrainerConfig(threads=1))
    with pytest.raises(DataError, match="nothing to train on"):
        dpo(client, [], DPO, folder)
    with pytest.raises(ConfigError, match="no reference weights"):
        dpo(Unreferenced(), PAIRS, DPO, folder)
    folder.close()


def test_a_pair_that_is_settled_teaches_nothing_and_breaks_nothing() -> None:
    settled = pair_loss(PairLogprobs(-1.0, -5000.0), PairLogprobs(-5000.0, -1.0), 1.0)
    assert settled.loss == 0.0
    assert settled.slope == 0.0
    lost = pair_loss(PairLogprobs(-5000.0, -1.0), PairLogprobs(-1.0, -5000.0), 1.0)
    assert lost.loss == pytest.approx(9998)
    assert lost.slope == -1.0
