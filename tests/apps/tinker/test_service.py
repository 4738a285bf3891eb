# SPDX-License-Identifier: Apache-2.0
"""The public client against our service, on a random Llama of a few thousand parameters."""

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.apps.tinker.services import KEY, connected, process, quiet, service
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.errors import AuthError, DataError, TrainingError
from newskills.cli import main
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.backends.tinker.client import Service, TinkerClient
from newskills.train.loops.sft import example
from newskills.train.verbs import AdamParams, Datum, LossConfig, SamplingParams

tinker = pytest.importorskip("tinker", reason="needs newskills[tinker]")
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # see `quiet`
    pytest.mark.slow,
]
ADAM = AdamParams(learning_rate=0.02)
EXAMPLES = [example([1, 2, token], [token + 1, token + 2, 0]) for token in range(3, 11)]
RL = Datum(tokens=[1, 2, 3], targets=[2, 3, 4], logprobs=[0.0, -9.0, -0.001], advantages=[0.0, 2.0, -1.0])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    with quiet():
        yield


@pytest.fixture(scope="module")
def address(model: Path, tmp_path_factory: pytest.TempPathFactory, collected: None) -> Iterator[str]:
    with service([model], tmp_path_factory.mktemp("states")) as found:
        yield found


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    monkeypatch.setenv("TINKER_TELEMETRY", "0")


@pytest.fixture
def client(address: str) -> Iterator[TinkerClient]:
    with connected(address) as found:
        yield found


@pytest.fixture
def theirs(address: str) -> Iterator[Any]:
    """The client itself."""
    with tinker.ServiceClient(base_url=address, api_key=KEY) as found:
        yield found


def here(model: Path, rank: int = 4, seed: int = 5) -> CpuTrainer:
    lora = LoraConfig(rank=rank, seed=seed)
    return CpuTrainer(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))


def learn(one: Any, steps: int) -> list[Any]:
    losses = []
    for _ in range(steps):
        losses.append(one.forward_backward(EXAMPLES, "cross_entropy").loss)
        one.optim_step(ADAM)
    return losses


def test_supervised_steps_are_those_of_the_trainer_in_this_process(model: Path, client: TinkerClient) -> None:
    found, expected = learn(client, 6), learn(here(model), 6)
    assert found == pytest.approx(expected, abs=1e-5)
    assert found[-1] < 0.7 * found[0]


@pytest.mark.parametrize("loss", ["importance_sampling", "ppo", "cispo", "dro", "gspo"])
def test_policy_losses_and_log_probabilities_are_those_of_the_trainer(
    model: Path, client: TinkerClient, loss: str
) -> None:
    own = here(model)
    own.all_logprobs = True
    config = LossConfig(clip_low_threshold=0.5) if loss == "ppo" else None
    for _ in range(2):
        found, expected = (one.forward_backward([RL, RL], loss, config) for one in (client, own))
        assert found.loss == pytest.approx(expected.loss, rel=1e-5)
        for said, right in zip(found.logprobs, expected.logprobs, strict=True):
            assert said == pytest.approx(right, abs=1e-5)
        norms = [one.optim_step(ADAM)["grad_norm"] for one in (client, own)]
        assert norms[0] == pytest.approx(norms[1], rel=1e-5)


@pytest.mark.parametrize("temperature", [0.7, 1.5])
@pytest.mark.parametrize("loss", ["importance_sampling", "ppo", "cispo", "dro", "gspo"])
def test_losses_at_a_temperature_are_those_of_the_trainer(
    model: Path, client: TinkerClient, loss: str, temperature: float
) -> None:
    own = here(model)
    own.all_logprobs = True
    config = LossConfig(temperature=temperature)
    found, expected = (one.forward_backward([RL, RL], loss, config) for one in (client, own))
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    assert found.logprobs[0] == pytest.approx(expected.logprobs[0], abs=1e-5)
    assert found.logprobs != own.forward_backward([RL, RL], loss).logprobs


def test_samples_have_the_log_probabilities_of_their_temperature(model: Path, client: TinkerClient) -> None:
    params = SamplingParams(max_tokens=6, seed=3, temperature=0.7, logprob_temperature=0.7)
    ((sample, *_),) = client.sample([[1, 2, 3]], 2, params)
    plain = client.sample([[1, 2, 3]], 2, msgspec.structs.replace(params, logprob_temperature=1.0))[0][0]
    assert sample.tokens == plain.tokens
    tokens = [1, 2, 3, *sample.tokens]
    datum = Datum(tokens=tokens[:-1], targets=tokens[1:], weights=[0.0, 0.0, *[1.0] * len(sample.tokens)])
    assert sample.logprobs == pytest.approx(here(model).logprobs([datum], 0.7)[0][2:], abs=1e-4)
    assert max(abs(one - other) for one, other in zip(sample.logprobs, plain.logprobs, strict=True)) > 0.01


def test_a_service_that_does_not_divide_is_refused(client: TinkerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = client._learner()
    forward = learner.forward
    monkeypatch.setattr(learner, "forward", lambda data, loss, settings=None: forward(data, loss))
    params = SamplingParams(max_tokens=6, seed=3, temperature=0.7, logprob_temperature=0.7)
    with pytest.raises(TrainingError, match=r"at temperature 1 only. Set \+\+temperature=1"):
        client.sample([[1, 2, 3]], 2, params)


def test_samples_follow_their_seed_and_are_those_of_the_weights(client: TinkerClient) -> None:
    learn(client, 2)
    params = SamplingParams(max_tokens=6, seed=3, stop=[0])
    first, again = (client.sample([[1, 2, 3], [4, 5]], 3, params) for _ in range(2))
    assert first == again
    other = client.sample([[1, 2, 3], [4, 5]], 3, SamplingParams(max_tokens=6, seed=4, stop=[0]))
    assert other != first
    for prompt, group in zip([[1, 2, 3], [4, 5]], first, strict=True):
        for one in group:
            tokens, before = [*prompt, *one.tokens], [0.0] * (len(prompt) - 1)
            datum = Datum(
                tokens=tokens[:-1],
                targets=tokens[1:],
                logprobs=[*before, *one.logprobs],
                advantages=[*before, *[1.0] * len(one.tokens)],
            )
            said = client.forward_backward([datum], "importance_sampling").logprobs[0][len(before) :]
            assert said == pytest.approx(one.logprobs, abs=1e-4)


def test_a_saved_state_goes_on_to_the_same_numbers(client: TinkerClient, address: str, tmp_path: Path) -> None:
    learn(client, 3)
    saved = client.save_state(tmp_path / "checkpoint-000003")
    expected = learn(client, 3)
    greedy = SamplingParams(max_tokens=5, temperature=0)
    with connected(address) as other:
        other.load_state(saved.state_path)
        assert learn(other, 3) == expected
        other.sample_from(saved.sampler_path)
        before = other.sample([[1, 2, 3]], 1, greedy)
    client.sample_from(saved.sampler_path)
    assert client.sample([[1, 2, 3]], 1, greedy) == before
    with pytest.raises(DataError, match=r"did you mean 'tinker://.*weights/checkpoint-000003'"):
        client.load_state(saved.state_path[:-1] + "4")


def test_weights_without_optimizer_begin_with_a_fresh_one(theirs: Any) -> None:
    first = theirs.create_lora_training_client("tiny", rank=4, seed=1).result()
    data = [datum_of(one) for one in EXAMPLES]
    for _ in range(3):
        first.forward_backward(data, "cross_entropy").result()
        first.optim_step(tinker.AdamParams(learning_rate=0.02)).result()
    path = first.save_state("three").result().path
    second = theirs.create_training_client_from_state(path).result()
    whole = theirs.create_training_client_from_state_with_optimizer(path).result()
    assert second.get_info().lora_rank == 4
    losses: list[Any] = []
    for one in (second, whole):
        losses.append([])
        for _ in range(2):
            losses[-1].append(one.forward_backward(data, "cross_entropy").result().metrics["loss:sum"])
            one.optim_step(tinker.AdamParams(learning_rate=0.02)).result()
    assert losses[0][0] == losses[1][0]
    assert losses[0][1] != losses[1][1]


def datum_of(one: Datum) -> Any:
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(list(one.tokens)),
        loss_fn_inputs={"target_tokens": list(one.targets), "weights": list(one.weights)},
    )


def test_forward_alone_changes_nothing_and_a_custom_loss_is_that_loss(theirs: Any) -> None:
    import torch

    client = theirs.create_lora_training_client("tiny", rank=4, seed=1).result()
    data = [datum_of(one) for one in EXAMPLES[:2]]
    unweighted = [tinker.Datum(model_input=one.model_input, loss_fn_inputs={**one.loss_fn_inputs}) for one in data]
    before = client.forward(unweighted, "cross_entropy").result()
    assert all(len(one["logprobs"].data) == 5 and min(one["logprobs"].data) < -1 for one in before.loss_fn_outputs)

    def negative(data: Any, logprobs: Any) -> tuple[Any, dict[str, float]]:
        return -sum(one[-3:].sum() for one in logprobs), {}

    found = client.forward_backward_custom(data, negative).result()
    assert found.metrics["loss:sum"] == pytest.approx(before.metrics["loss:sum"], rel=1e-5)
    assert torch.is_grad_enabled()
    again = client.forward(data, "cross_entropy").result()
    assert again.metrics == before.metrics


def test_what_ends_samples_and_log_probabilities_of_prompts(theirs: Any, model: Path) -> None:
    sampler = theirs.create_sampling_client(base_model=str(model)).result()
    prompt = tinker.ModelInput.from_ints([1, 2, 3, 4])

    def ask(**settings: Any) -> Any:
        params = tinker.SamplingParams(max_tokens=20, temperature=0.0, **settings)
        return sampler.sample(prompt, 1, params).result().sequences[0]

    free = ask(stop=[])
    assert (len(free.tokens), free.stop_reason) == (20, "length")
    ended = ask(stop=[free.tokens[4]])
    assert ended.tokens == free.tokens[: free.tokens.index(free.tokens[4]) + 1]
    assert ended.stop_reason == "stop"
    tokenizer = sampler.get_tokenizer()
    text = tokenizer.decode(free.tokens[2:4])
    by_text = ask(stop=[text])
    assert text in tokenizer.decode(by_text.tokens)
    assert text not in tokenizer.decode(by_text.tokens[:-1])
    whole = sampler.compute_logprobs(prompt).result()
    assert whole[0] is None
    assert sampler.compute_logprobs(prompt, prompt_logprobs_last_n=2).result() == [None, None, *whole[2:]]
    plain = sampler.sample(prompt, 4, tinker.SamplingParams(max_tokens=3)).result()
    assert len({one.sequence_id for one in plain.sequences}) == 4


def test_many_ask_at_once_and_a_bad_one_takes_no_other_with_it(theirs: Any) -> None:
    sampler = theirs.create_sampling_client(base_model="tiny").result()
    params = tinker.SamplingParams(max_tokens=4)
    prompts = [[1, 2, token] for token in range(3, 20)]
    futures = [sampler.sample(tinker.ModelInput.from_ints(prompt), 2, params) for prompt in prompts]
    bad = sampler.sample(tinker.ModelInput.from_ints([1, VOCAB]), 2, params)
    assert all(len(future.result().sequences) == 2 for future in futures)
    with pytest.raises(tinker.RequestFailedError, match=rf"token {VOCAB}; the model's vocabulary has {VOCAB}"):
        bad.result()


def test_several_models_learn_side_by_side(theirs: Any) -> None:
    clients = [theirs.create_lora_training_client("tiny", rank=rank, seed=1).result() for rank in (2, 4)]
    data = [datum_of(one) for one in EXAMPLES]
    promises = []
    for _ in range(3):
        for one in clients:
            promises.append((one, one.forward_backward(data, "cross_entropy")))
            one.optim_step(tinker.AdamParams(learning_rate=0.02))
    losses = {one: [p.result().metrics["loss:sum"] for owner, p in promises if owner is one] for one in clients}
    assert all(found[2] < found[0] for found in losses.values())
    assert losses[clients[0]][2] != losses[clients[1]][2]


def test_what_is_saved_is_listed_and_can_be_taken_away(theirs: Any, address: str) -> None:
    client = theirs.create_lora_training_client("tiny", rank=4, user_metadata={"why": "test"}).result()
    path = client.save_state("kept", ttl_seconds=3600).result().path
    client.save_weights_for_sampler("asked").result()
    with pytest.raises(tinker.RequestFailedError, match="already"):
        client.save_state("kept").result()
    client.save_state("kept", overwrite=True).result()
    with pytest.raises(tinker.RequestFailedError, match="is not a valid checkpoint name"):
        client.save_state("../../etc").result()
    rest = tinker.RestClient(base_url=address, api_key=KEY)
    run = rest.get_training_run(client.model_id).result()
    assert (run.lora_rank, run.user_metadata, run.last_checkpoint.tinker_path) == (4, {"why": "test"}, path)
    found = rest.list_checkpoints(client.model_id).result().checkpoints
    assert {(one.checkpoint_id, one.checkpoint_type) for one in found} == {
        ("weights/kept", "training"),
        ("sampler_weights/asked", "sampler"),
    }
    assert rest.get_weights_info_by_tinker_path(path).result().lora_rank == 4
    names = [one.model_name for one in rest.get_server_capabilities().result().supported_models]
    assert names[0].endswith("/tiny")
    rest.delete_checkpoint(client.model_id, "weights/kept").result()
    with pytest.raises(tinker.NotFoundError, match="Unknown checkpoint"):
        rest.get_weights_info_by_tinker_path(path).result()


def test_weights_are_given_away_by_addresses_that_were_signed(theirs: Any, address: str, tmp_path: Path) -> None:
    client = theirs.create_lora_training_client("tiny", rank=4).result()
    path = client.save_weights_external("mine").result().path
    rest = tinker.RestClient(base_url=address, api_key=KEY)
    found = rest.get_external_weights_urls(path).result()
    assert set(found.urls) == {"adapter_config.json", "adapter_model.safetensors"}
    url = found.urls["adapter_config.json"]
    with urllib.request.urlopen(url) as answer:
        assert json.loads(answer.read())["r"] == 4
    for wrong in (url[:-1] + "zz", url.replace("adapter_config.json", "..%2F..%2Frun.json"), url.split("?")[0]):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(wrong)
        assert refused.value.code == 403
        refused.value.close()


def bad_lengths(client: TinkerClient) -> None:
    client.forward_backward([Datum(tokens=[1, 2], targets=[2, 3, 4], weights=[1.0] * 3)], "cross_entropy")


def no_advantages(client: TinkerClient) -> None:
    client.forward_backward([Datum(tokens=[1], targets=[2], logprobs=[0.0], advantages=[])], "ppo")


def too_long(client: TinkerClient) -> None:
    client.forward_backward([example([1] * 60, [2] * 9)], "cross_entropy")


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (bad_lengths, "2 tokens but 3 target_tokens"),
        (no_advantages, "as many advantages and targets as tokens"),
        (too_long, "does not fit into the model's context of 64"),
        (lambda c: c.sample([[1] * 60], 1, SamplingParams(max_tokens=9)), "the model's context is 64"),
        (lambda c: c.sample_from("tinker://x/weights/y"), "Unknown checkpoint 'tinker://x/weights/y'"),
        (lambda c: c.sample_from("tinker://x/y"), "is not a checkpoint; expected tinker://RUN/weights/NAME"),
    ],
)
def test_errors_are_sentences(client: TinkerClient, ask: Callable[[TinkerClient], object], sentence: str) -> None:
    with pytest.raises(TrainingError, match=sentence):
        ask(client)
    assert learn(client, 1)


def test_an_unknown_loss_and_model_are_named(theirs: Any, address: str) -> None:
    client = theirs.create_lora_training_client("tiny", rank=4).result()
    with pytest.raises(tinker.RequestFailedError, match="Unknown loss 'dpo'; "):
        client.forward_backward([datum_of(EXAMPLES[0])], "dpo").result()
    with (
        connected(address, "tinny") as other,
        pytest.raises(TrainingError, match="Unknown model 'tinny'; did you mean 'tiny"),
    ):
        other.save_weights("x")


def post(address: str, path: str, body: bytes, **headers: Any) -> tuple[int, Any]:
    request = urllib.request.Request(f"{address}/api/v1/{path}", data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "sentence"),
    [
        ("forward_backward", b"\xff\xff\xff", {}, 400, "truncated or damaged"),
        ("forward_backward", b"\x0a\x01x\x10\x01", {}, 404, "Unknown model 'x'"),
        ("forward_backward", b"junk", {"Content-Encoding": "zstd"}, 400, "body is damaged"),
        ("forward_backward", b"", {"Content-Encoding": "br"}, 400, "only zstd is supported"),
        ("create_session", b"[]", {}, 400, "is not valid"),
        ("create_model", b'{"session_id": "x"}', {}, 400, "model_seq_id"),
        ("optim_step", b"{", {}, 400, "not a JSON object"),
        ("retrieve_future", b'{"request_id": "nothing"}', {}, 404, "no request nothing"),
        ("nowhere", b"{}", {}, 404, "nothing at /api/v1/nowhere"),
        ("asample", b'{"num_samples": 9000000000, "prompt": {"chunks": []}}', {}, 400, "num_samples"),
        ("create_session", b"{}", {"Origin": "http://evil"}, 403, "Web pages"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(
    address: str, path: str, body: bytes, headers: dict[str, str], status: int, sentence: str
) -> None:
    code, answer = post(address, path, body, **headers)
    assert (code, sentence in answer["error"]) == (status, True), answer


def test_a_session_that_is_silent_ends_and_its_models_with_it(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        service([model], tmp_path) as address,
        connected(address) as other,
        connected(address, rank=2) as client,
    ):
        path = client.save_weights("kept")
        monkeypatch.setattr("newskills_tinker.server.service.SILENT", -1.0)
        other.save_weights("new")
        with pytest.raises(TrainingError, match=f"its last state is {path}"):
            learn(client, 1)


def test_a_session_ends_where_the_work_in_it_fails(address: str) -> None:
    client = TinkerClient(Service(base_model="tiny", rank=4, base_url=address))
    with pytest.raises(DataError, match="no state"), client:
        client.load_state("no state")
    with pytest.raises(TrainingError):
        client.save_weights("y")


def bare_model(address: str) -> str:
    """Without the client: the id of a model."""
    session = post(address, "create_session", b"{}")[1]["session_id"]
    row = {"session_id": session, "model_seq_id": 0, "base_model": "tiny", "lora_config": {"rank": 2}}
    made = post(address, "create_model", json.dumps(row).encode())[1]
    assert post(address, "create_model", json.dumps(row).encode())[1] == made
    return made["model_id"]


def later(address: str, verb: str, **row: Any) -> str:
    return post(address, verb, json.dumps(row).encode())[1]["request_id"]


def kept(address: str, request_id: str) -> Any:
    return post(address, "retrieve_future", json.dumps({"request_id": request_id}).encode())[1]


def test_requests_of_a_model_are_done_in_their_order_and_once(address: str) -> None:
    model_id = bare_model(address)
    third = later(address, "save_weights", model_id=model_id, seq_id=3, path="third")
    second = later(address, "optim_step", model_id=model_id, seq_id=2, adam_params={"learning_rate": 0.1})
    first = later(address, "save_weights", model_id=model_id, seq_id=1, path="first")
    for _ in range(2):  # a client that has lost an answer asks again
        assert kept(address, first)["path"].endswith("/weights/first")
        assert kept(address, second)["metrics"] == {"grad_norm:mean": 0.0}
        assert kept(address, third)["path"].endswith("/weights/third")
        assert later(address, "save_weights", model_id=model_id, seq_id=3, path="third") == third
    with urllib.request.urlopen(f"{address}/api/v1/training_runs/{model_id}/checkpoints") as answer:
        found = json.loads(answer.read())["checkpoints"]
    assert [one["checkpoint_id"] for one in found] == ["weights/first", "weights/third"]


def test_a_request_whose_forerunner_never_comes_is_given_up(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills_tinker.server.queue.EARLIER_REQUESTS_SECONDS", 0.2)
    model_id = bare_model(address)
    lonely = later(address, "save_weights", model_id=model_id, seq_id=2, path="lonely")
    found = kept(address, lonely)
    assert (found["category"], "Request 1 of" in found["error"]) == ("user", True)
    assert kept(address, later(address, "save_weights", model_id=model_id, seq_id=3, path="next"))["path"]


def test_a_packed_body_is_unpacked(address: str) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(b"\x0a\x01x\x10\x01")
    assert post(address, "forward_backward", packed, **{"Content-Encoding": "zstd"})[0] == 404


def test_the_key_is_wanted_where_one_is_set(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service([model], tmp_path, token="tml-secret") as address:
        with connected(address) as client, pytest.raises(AuthError, match="TINKER_API_KEY was refused"):
            client.save_weights("x")
        monkeypatch.setenv("TINKER_API_KEY", "tml-secret")
        with connected(address) as client:
            assert client.save_weights("x").endswith("/weights/x")


@pytest.mark.nightly
def test_states_survive_a_service_that_is_killed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        process(model, tmp_path / "states", "--model_name=my/tiny") as (running, address),
        monkeypatch.context() as patched,
        connected(address, "my/tiny") as client,
    ):
        patched.setattr("newskills.train.backends.tinker.client.CLOSE_SECONDS", 0.1)  # it will be gone
        learn(client, 2)
        path = client.save_weights("two")
        expected = learn(client, 2)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    torn = tmp_path / "states" / path.split("/")[2] / "weights" / ".torn.tmp"
    torn.mkdir()
    with process(model, tmp_path / "states", "--model_name=my/tiny") as (running, address):
        with pytest.raises(urllib.error.HTTPError) as lost:
            urllib.request.urlopen(f"{address}/api/v1/sessions/gone")
        assert "the service was restarted" in lost.value.read().decode()
        with connected(address, "my/tiny") as client:
            client.load_state(path)
            assert learn(client, 2) == expected
        assert not torn.exists()
        running.send_signal(signal.SIGTERM)
        assert running.wait(120) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--token_env=OTHER"], "The key must begin with tml-"),
        (["--token_env=NONE"], "variable NONE is not set"),
        (["--model_name=a,b"], "--model has 1 models, but --model_name has 2 names"),
        (["--model=nowhere"], "nowhere"),
        (["--dtype=int8"], "no dtype int8"),
    ],
)
def test_options_of_the_command(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    monkeypatch.setenv("OTHER", "a-secret")
    assert main(["serve_tinker", f"--model={model}", f"--output_dir={tmp_path}", "--port=0", *words]) != 0
    said = "".join(capsys.readouterr())
    assert sentence in said
    assert "a-secret" not in said
