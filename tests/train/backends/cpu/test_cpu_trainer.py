# SPDX-License-Identifier: Apache-2.0
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.train.tiny import VOCAB, plain_logits, tensors, tiny_folder, with_pairs

from newskills.base.errors import ConfigError, DataError, TrainingError
from newskills.train.backends.cpu.layout import Layout, share_prefixes
from newskills.train.backends.cpu.llama import Llama, LoraConfig
from newskills.train.backends.cpu.losses import loss_of
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.backends.cpu.weights import read_shape, read_tensors
from newskills.train.loops.sft import example
from newskills.train.verbs import AdamParams, Datum, LossConfig, SamplingParams

FULL = CpuTrainerConfig(lora=LoraConfig(rank=4, alpha=8), dtype="float32", threads=1)
TOKENS = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def model(folder: Path) -> Llama:
    return Llama(read_shape(folder), read_tensors(folder), LoraConfig(rank=4), torch.float32)


def stirred(trainer: CpuTrainer) -> CpuTrainer:
    """A trainer whose pairs do something."""
    for step in range(3):
        data = [example([1, 2, 3, 4 + step], [5, 6, 7, 0])]
        trainer.forward_backward(data, "cross_entropy")
        trainer.optim_step(AdamParams(learning_rate=0.05))
    return trainer


@settings(max_examples=25)
@given(start=TOKENS, ends=st.lists(TOKENS, min_size=1, max_size=4), others=st.lists(TOKENS, max_size=3))
def test_sequences_together_are_what_each_is_alone(
    model: Llama, start: list[int], ends: list[list[int]], others: list[list[int]]
) -> None:
    sequences = [start + end for end in ends] + others
    with torch.no_grad():
        layout = Layout(sequences)
        logits = (model(layout)[layout.where] @ model.head.T).split([len(tokens) for tokens in sequences])
        for tokens, found in zip(sequences, logits, strict=True):
            torch.testing.assert_close(found, plain_logits(tensors(), tokens), atol=2e-4, rtol=1e-4)


def test_what_several_begin_with_is_read_once() -> None:
    start = list(range(1, 31))
    sequences = [[*start, 31, end] for end in range(32, 40)] + [[60] * 5]
    shared = share_prefixes(sequences)
    assert [len(prefix) for prefix in shared.prefixes] == [31]
    assert [len(own) for own in shared.own] == [1] * 8 + [5]
    assert len(Layout(sequences).ids) == 31 + 8 + 5
    assert share_prefixes([[1, 2, 3], [1, 2, 3]]).prefixes == []


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.5])
def test_the_gradient_is_that_of_the_plain_mathematics(folder: Path, temperature: float) -> None:
    trainer = stirred(CpuTrainer(folder, FULL))
    prompt = list(range(1, 20))
    data = [example(prompt, [7, 8, 0]), example(prompt, [9, 0]), example([5, 4], [3, 2, 1])]
    output = trainer.forward_backward(data, "cross_entropy", LossConfig(temperature=temperature))
    pairs = {name: value.detach().clone().requires_grad_() for name, value in trainer.named.items()}
    weights = with_pairs(tensors(), pairs, 2.0)
    loss = torch.zeros(())
    for datum in data:
        logprobs = (plain_logits(weights, list(datum.tokens)) / temperature).log_softmax(-1)
        found = logprobs[range(len(datum.targets)), list(datum.targets)]
        loss = loss - (found * torch.tensor(datum.weights)).sum()
    loss.backward()
    assert output.loss == pytest.approx(loss.item(), rel=1e-5)
    for name, value in trainer.named.items():
        torch.testing.assert_close(value.grad, pairs[name].grad, atol=1e-4, rtol=1e-3)


def test_adam_is_torchs_own(folder: Path) -> None:
    trainer = CpuTrainer(folder, FULL)
    copies = [value.detach().clone().requires_grad_() for value in trainer.named.values()]
    theirs = torch.optim.AdamW(copies, lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for token in (3, 4, 5):
        trainer.forward_backward([example([1, 2, token], [token + 1, 0])], "cross_entropy")
        for copy, value in zip(copies, trainer.named.values(), strict=True):
            copy.grad = value.grad.clone()
        torch.nn.utils.clip_grad_norm_(copies, 0.5)
        theirs.step()
        said = trainer.optim_step(AdamParams(learning_rate=0.01, weight_decay=0.1, grad_clip_norm=0.5))
        assert said["grad_norm"] > 0.5
        for copy, value in zip(copies, trainer.named.values(), strict=True):
            torch.testing.assert_close(value, copy)


@pytest.mark.nightly
def test_a_step_needs_no_compiler(folder: Path) -> None:
    """torch's compiler takes a third of the CPU time before a first step."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom tests.train.backends.cpu import test_cpu_trainer as here\n"
        "trainer = here.CpuTrainer(Path(sys.argv[1]), here.FULL)\n"
        "trainer.forward_backward([here.example([1, 2, 3], [4, 0])], 'cross_entropy')\n"
        "trainer.optim_step(here.AdamParams(learning_rate=0.01))\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)


@pytest.mark.parametrize("loss", ["importance_sampling", "ppo", "cispo"])
def test_policy_losses(folder: Path, loss: str) -> None:
    trainer = stirred(CpuTrainer(folder, FULL))
    datum = Datum(tokens=[1, 2, 3], targets=[2, 3, 4], logprobs=[0.0, -9.0, -0.001], advantages=[0.0, 2.0, -1.0])
    output = trainer.forward_backward([datum], loss, LossConfig())
    first, second = (torch.tensor(output.logprobs[0][at]) - datum.logprobs[at] for at in (1, 2))
    if loss == "importance_sampling":
        expected = -(first.exp() * 2 - second.exp())
    elif loss == "cispo":
        one, two = output.logprobs[0][1:]
        expected = -(first.exp().clamp(0, 4) * one * 2 - second.exp().clamp(0, 4) * two)
    else:
        expected = -(
            torch.minimum(first.exp() * 2, first.exp().clamp(0.8, 1.2) * 2)
            + torch.minimum(-second.exp(), -second.exp().clamp(0.8, 1.2))
        )
    assert output.loss == pytest.approx(expected.item(), rel=1e-5)
    assert output.logprobs[0][0] == 0.0


def test_sampling_greedily_is_the_likeliest_token_of_the_plain_mathematics(folder: Path) -> None:
    trainer = stirred(CpuTrainer(folder, FULL))
    weights = with_pairs(tensors(), {name: value.detach() for name, value in trainer.named.items()}, 2.0)
    prompts = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10, 11, 12, 13], [14], [4, 5, 6, 7, 8, 9, 10, 11, 12, 3]]
    found = trainer.sample(prompts, 2, SamplingParams(max_tokens=8, temperature=0, stop=[0, 7]))
    for prompt, samples in zip(prompts, found, strict=True):
        tokens = list(prompt)
        for _ in range(8):
            tokens.append(int(plain_logits(weights, tokens)[-1].argmax()))
            if tokens[-1] in (0, 7):
                break
        for sampled in samples:
            assert sampled.tokens == tokens[len(prompt) :]
            assert sampled.stop_reason == ("stop" if tokens[-1] in (0, 7) else "length")


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.5])
def test_logprobs_of_samples_are_those_of_training(folder: Path, temperature: float) -> None:
    trainer = stirred(CpuTrainer(folder, FULL))
    prompts = [[1, 2, 3], [9, 8, 7, 6]]
    params = SamplingParams(
        max_tokens=10, stop=[0], seed=3, temperature=0.7, top_p=0.9, logprob_temperature=temperature
    )
    at = LossConfig(temperature=temperature)
    for prompt, samples in zip(prompts, trainer.sample(prompts, 4, params), strict=True):
        for sampled in samples:
            tokens = [*prompt, *sampled.tokens]
            before = [0.0] * (len(prompt) - 1)
            datum = Datum(
                tokens=tokens[:-1],
                targets=tokens[1:],
                logprobs=[*before, *sampled.logprobs],
                advantages=[*before, *[1.0] * len(sampled.tokens)],
            )
            again = trainer.forward_backward([datum], "importance_sampling", at).logprobs[0][len(before) :]
            assert again == pytest.approx(sampled.logprobs, abs=1e-4)


def test_samples_follow_the_distribution_and_their_seed(folder: Path) -> None:
    trainer = CpuTrainer(folder, FULL)
    params = SamplingParams(max_tokens=1, seed=1)
    found = trainer.sample([[1, 2, 3]], 4000, params)[0]
    shares = plain_logits(tensors(), [1, 2, 3])[-1].softmax(-1)
    counts = torch.bincount(torch.tensor([one.tokens[0] for one in found]), minlength=VOCAB) / 4000
    assert (counts - shares).abs().max() < 0.04
    longer = SamplingParams(max_tokens=6, seed=5, stop=[0])
    one = trainer.sample([[1, 2], [3, 4, 5]], 3, longer)
    assert one == trainer.sample([[1, 2], [3, 4, 5]], 3, longer)
    assert one != trainer.sample([[1, 2], [3, 4, 5]], 3, SamplingParams(max_tokens=6, seed=6, stop=[0]))
    top = trainer.sample([[1, 2, 3]], 200, SamplingParams(max_tokens=1, top_k=3))[0]
    assert {sampled.tokens[0] for sampled in top} <= set(shares.topk(3).indices.tolist())


def test_a_saved_state_goes_on_exactly(folder: Path, tmp_path: Path) -> None:
    data = [example([1, 2, 3, 4], [5, 6, 7, 0])]
    adam = AdamParams(learning_rate=0.05)
    whole, halved = stirred(CpuTrainer(folder, FULL)), stirred(CpuTrainer(folder, FULL))
    halved.save_state(tmp_path / "state")
    again = CpuTrainer(folder, FULL)
    again.load_state(str(tmp_path / "state"))
    for trainer in (whole, again):
        trainer.forward_backward(data, "cross_entropy")
        trainer.optim_step(adam)
    for one, other in zip(whole.named.values(), again.named.values(), strict=True):
        assert torch.equal(one, other)
    other = CpuTrainer(folder, CpuTrainerConfig(lora=LoraConfig(rank=2), dtype="float32", threads=1))  # type: ignore[assignment]
    with pytest.raises(DataError, match="belongs to another run"):
        other.load_state(str(tmp_path / "state"))  # type: ignore[attr-defined]
    (tmp_path / "state/adapter_model.safetensors").write_bytes(b"cut")
    with pytest.raises(DataError, match="is not a checkpoint"):
        again.load_state(str(tmp_path / "state"))


def test_a_loss_that_is_no_number_stops_before_the_weights_change(folder: Path) -> None:
    trainer = stirred(CpuTrainer(folder, FULL))
    before = [value.detach().clone() for value in trainer.named.values()]
    datum = Datum(tokens=[1, 2], targets=[2, 3], logprobs=[0.0, -1e9], advantages=[0.0, 1.0])
    with pytest.raises(TrainingError, match="loss of step 4 is -inf"):
        trainer.forward_backward([datum], "importance_sampling")
    trainer.optimizer.zero_grad()
    for old, value in zip(before, trainer.named.values(), strict=True):
        assert torch.equal(old, value)


def test_bad_data_is_refused_with_a_sentence(folder: Path) -> None:
    trainer = CpuTrainer(folder, FULL)
    with pytest.raises(DataError, match="66 tokens does not fit into the model's context of 64"):
        trainer.forward_backward([example([1] * 60, [2] * 6)], "cross_entropy")
    with pytest.raises(DataError, match="as many weights and targets"):
        trainer.forward_backward([Datum(tokens=[1], targets=[2])], "cross_entropy")
    with pytest.raises(DataError, match="no tokens to train on"):
        trainer.forward_backward([Datum(tokens=[1], targets=[2], weights=[0.0])], "cross_entropy")
    with pytest.raises(ConfigError, match="context is 64"):
        trainer.sample([[1] * 60], 1, SamplingParams(max_tokens=10))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"architectures": ["MixtralForCausalLM"]}, "architecture is MixtralForCausalLM"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rotary positions are of the type yarn"),
        ({"hidden_act": "gelu"}, "activation is gelu"),
        ({"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": True}, "a sliding window"),
    ],
)
def test_models_it_would_compute_wrongly_are_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_shape(tiny_folder(tmp_path / "other", **changed))


def test_folders_that_hold_no_model(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match=r"no config\.json"):
        CpuTrainer(tmp_path, FULL)
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 3}))
    with pytest.raises(DataError, match="does not describe a Llama"):
        CpuTrainer(tmp_path, FULL)
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    with pytest.raises(DataError, match=r"no \*\.safetensors"):
        CpuTrainer(tmp_path, FULL)
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:2000])
    with pytest.raises(DataError, match="cannot be read"):
        CpuTrainer(tmp_path, FULL)
    with pytest.raises(ConfigError, match="no dtype float8"):
        CpuTrainer(folder, CpuTrainerConfig(dtype="float8"))


def test_the_loss_of_whole_sequences_is_that_of_its_formula() -> None:
    """gspo and dro beside plain arithmetic; the slope of gspo is each token's own."""
    logprobs = torch.tensor([-1.0, -2.0, -0.5], requires_grad=True)
    inputs = {
        "logprobs": torch.tensor([-1.2, -1.9, -0.6]),
        "advantages": torch.tensor([1.0, -0.5, 2.0]),
        "in_ratio": torch.tensor([1.0, 1.0, 1.0]),
        "sequence": torch.tensor([0, 0, 1]),
    }
    first, second = math.exp((0.2 - 0.1) / 2), math.exp(0.1)
    wide = LossConfig(clip_low_threshold=0.5, clip_high_threshold=1.06)
    loss = loss_of("gspo", logprobs, inputs, wide)
    assert loss.item() == pytest.approx(-(first * 1.0 + first * -0.5 + 1.06 * 2.0), rel=1e-5)
    loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([-first, 0.5 * first, 0.0], rel=1e-5)
    dro = loss_of("dro", logprobs, inputs, LossConfig(beta=0.1))
    penalty = 0.05 * (0.2**2 + 0.1**2 + 0.1**2)
    assert dro.item() == pytest.approx(-(-1.0 + 1.0 - 1.0 - penalty), rel=1e-5)
    assert second > 1.06
