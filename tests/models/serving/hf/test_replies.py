# SPDX-License-Identifier: Apache-2.0
"""Our server's replies beside what transformers itself computes of each prompt alone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="no torch here: pip install 'newskills[transformers]'")
pytest.importorskip("transformers", reason="no transformers here: pip install 'newskills[transformers]'")

from tests.models.serving.hf.tiny_models import Served, body, save_llama, save_model, served  # noqa: E402

from newskills.base.http.messages import HttpRequest  # noqa: E402
from newskills.models.serving.hf.prefixes import PrefixCache  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
PROMPTS = [
    "The quick brown fox",
    "What is 12 + 30? It is",
    "a",
    "Question: Which city is the capital of France? Answer:",
]
PROMPTS += [f"{prompt} {number}" for number, prompt in enumerate(PROMPTS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("hf") / "llama")


@pytest.fixture(scope="module")
def llama(folder: Path) -> Iterator[Served]:
    with served(folder) as place:
        assert not place.lines, "its batches are joined"
        yield place


def alone(place: Served, prompt: str, tokens: int) -> str:
    """What `generate` of transformers makes of one prompt."""
    ids = torch.tensor([place.loaded.tokenizer.encode(prompt)])
    out = place.loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens
    )
    new = out[0, ids.shape[1] :].tolist()
    return place.loaded.decode(new[:-1] if new[-1] in place.loaded.ends else new)


def values_of(place: Served, ids: list[int]) -> list[float]:
    logits = place.loaded.model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
    return [float(logits[place, token]) for place, token in enumerate(ids[1:])]


def test_greedy_replies_are_those_of_transformers(llama: Served) -> None:
    """More than fit into a batch, of several lengths, so that sequences join and leave."""
    limits = [5 + 9 * (number % 4) for number in range(len(PROMPTS))]
    texts = llama.texts(*(body(prompt, limit) for prompt, limit in zip(PROMPTS, limits, strict=True)))
    assert texts == [alone(llama, prompt, limit) for prompt, limit in zip(PROMPTS, limits, strict=True)]
    assert len(set(texts)) > 4


def test_an_echo_spells_the_prompt_and_measures_it(llama: Served) -> None:
    prompts = ["The é of café: ☃!", "The é of café is Paris", "The é of café is Lima and Oslo", "fox"]
    for _ in range(2):  # the second time, all of it is kept
        replies = llama.ask(*(body(prompt, 1, logprobs=2, echo=True) for prompt in prompts))
        for prompt, (status, reply) in zip(prompts, replies, strict=True):
            assert status == 200
            logprobs = reply["choices"][0]["logprobs"]
            assert "".join(logprobs["tokens"][:-1]) == prompt
            ids = llama.loaded.tokenizer.encode(prompt)
            assert logprobs["token_logprobs"][0] is None
            assert logprobs["token_logprobs"][1:-1] == pytest.approx(values_of(llama, ids), abs=1e-4)
            assert reply["usage"] == {
                "prompt_tokens": len(ids),
                "completion_tokens": 1,
                "total_tokens": len(ids) + 1,
            }
            best = llama.loaded.model(torch.tensor([ids])).logits[0].log_softmax(-1).max(-1).values.tolist()
            tops = [max(top.values()) for top in logprobs["top_logprobs"][1:]]
            assert tops == pytest.approx(best, abs=1e-4)


def test_examples_that_prompts_share_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = "Question: What is 1 + 1? Answer: 2\n\nQuestion: What is 2 + 2? Answer: 4\n\n" * 2
    prompts = [f"{examples}Question: What is {number} + {number}? Answer:" for number in range(10, 14)]
    with served(folder) as place:
        wanted = [alone(place, prompt, 12) for prompt in prompts]
        place.texts(body(prompts[0], 1))
        forward, counts = place.engine._forward, list[int]()
        real = forward.read

        def counted(ids: Any, *more: Any) -> Any:
            counts.append(ids.numel())
            return real(ids, *more)

        monkeypatch.setattr(forward, "read", counted)
        assert place.texts(*(body(prompt, 12) for prompt in prompts)) == wanted
        whole = sum(len(place.loaded.tokenizer.encode(prompt)) for prompt in prompts)
        assert sum(counts) < whole / 2
        counts.clear()
        measured = [
            reply for _, reply in place.ask(*(body(prompt, 1, echo=True, logprobs=1) for prompt in prompts))
        ]
        assert counts[0] > whole / 4, "what was read for a reply has no log-probabilities"
        for prompt, reply in zip(prompts, measured, strict=True):
            values = reply["choices"][0]["logprobs"]["token_logprobs"][1:-1]
            assert values == pytest.approx(values_of(place, place.loaded.tokenizer.encode(prompt)), abs=1e-4)


def test_contexts_are_kept_until_their_last_continuation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight documents with three continuations each, asked one after the other; memory for three documents."""
    contexts = [f"{number} What is it? " * 6 for number in range(8)]
    with served(folder, sequences=1) as place:
        sizes = [len(place.loaded.tokenizer.encode(context)) for context in contexts]
        place.engine._kept = PrefixCache(3 * max(sizes) + 20, 1)
        counts: list[int] = []
        real = place.engine._forward.read

        def counted(ids: Any, *more: Any) -> Any:
            counts.append(ids.numel())
            time.sleep(0.05)  # as of a real model: the next continuation comes meanwhile
            return real(ids, *more)

        monkeypatch.setattr(place.engine._forward, "read", counted)

        async def one_after_the_other(context: str) -> None:
            for continuation in ("yes", "no", "42"):
                content = json.dumps(body(f"{context}{continuation}", 1, echo=True, logprobs=1)).encode()
                reply = await place.server.answer(HttpRequest("POST", "/v1/completions", "", {}, content))
                assert reply.status == 200

        async def all_documents() -> None:
            await asyncio.gather(*map(one_after_the_other, contexts))

        asyncio.run(all_documents())
    assert sum(counts) < 1.6 * sum(sizes)


def test_seeds_give_the_same_whatever_is_beside_them(llama: Served) -> None:
    drawn = body("The quick", 20, temperature=1.0, top_k=50, top_p=0.9, min_p=0.01, repetition_penalty=1.1)
    (one,) = llama.texts({**drawn, "seed": 5})
    many = llama.texts(*({**drawn, "seed": seed} for seed in range(12)))
    assert many[5] == one
    assert len(set(many)) == 12


def test_settings_of_a_neighbour_change_no_reply(llama: Served) -> None:
    """Requests of all kinds in one batch get what each gets alone."""
    kinds: list[dict[str, Any]] = [{}, {"top_p": 0.9}, {"top_k": 20}, {"min_p": 0.1}, {"repetition_penalty": 1.2}]
    kinds += [{"logprobs": 2, "echo": True}, {"stop": ["a", "☃"]}, {"temperature": 0.0}]
    bodies = [
        body(prompt, 4 + 3 * number, **{"temperature": 0.9, "seed": number, **more})
        for number, prompt in enumerate(PROMPTS[:2])
        for more in kinds
    ]
    assert llama.texts(*bodies) == [llama.texts(each)[0] for each in bodies]


def test_sampling_follows_the_model_s_probabilities(llama: Served) -> None:
    """1,000 first tokens: shares near the probabilities, and nothing beyond top_k."""
    ids = llama.loaded.tokenizer.encode("The quick")
    probs = llama.loaded.model(torch.tensor([ids])).logits[0, -1].softmax(-1)
    kept = probs.topk(3)
    wanted = dict(zip(kept.indices.tolist(), (kept.values / kept.values.sum()).tolist(), strict=True))
    bodies = [
        body("The quick", 1, temperature=1.0, top_k=3, seed=seed, return_token_ids=True) for seed in range(1000)
    ]
    counts = dict.fromkeys(wanted, 0)
    for _, reply in llama.ask(*bodies):
        counts[reply["choices"][0]["token_ids"][0]] += 1
    assert {token: count / 1000 for token, count in counts.items()} == pytest.approx(wanted, abs=0.06)


def test_stop_texts_end_a_reply(llama: Served) -> None:
    whole = alone(llama, PROMPTS[0], 30)
    stop = whole[7:10]
    kept = whole[: whole.find(stop)]
    ((_, reply), (_, with_stop)) = llama.ask(
        body(PROMPTS[0], 30, stop=[stop, "nowhere"]),
        body(PROMPTS[0], 30, stop=stop, include_stop_str_in_output=True),
    )
    choice = reply["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == (kept, "stop", stop)
    assert reply["usage"]["completion_tokens"] < 30
    assert with_stop["choices"][0]["text"] == kept + stop


def test_a_token_that_ends_the_reply_is_no_text(folder: Path) -> None:
    with served(folder) as place:
        full = alone(place, PROMPTS[1], 8)
        third = place.loaded.tokenizer.encode(PROMPTS[1])
        ids = place.loaded.model.generate(torch.tensor([third]), do_sample=False, max_new_tokens=8)[
            0, len(third) :
        ]
        place.loaded.ends = frozenset({int(ids[4])})
        ((_, reply),) = place.ask(body(PROMPTS[1], 8))
        assert full.startswith(reply["choices"][0]["text"])
        assert reply["choices"][0]["finish_reason"] == "stop"
        assert reply["usage"]["completion_tokens"] == ids.tolist().index(int(ids[4])) + 1


def test_too_little_memory_halves_the_batch_and_changes_no_reply(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a device that has room for two sequences, then for none."""
    with served(folder) as place:
        wanted = [alone(place, prompt, 24) for prompt in PROMPTS]
        forward, room = place.engine._forward, 2

        def crowded(real: Any) -> Any:
            def run(ids: Any, *more: Any) -> Any:
                if ids.shape[0] > room:
                    raise torch.OutOfMemoryError("full")
                return real(ids, *more)

            return run

        monkeypatch.setattr(forward, "next", crowded(forward.next))
        monkeypatch.setattr(forward, "read", crowded(forward.read))
        assert place.texts(*(body(prompt, 24) for prompt in PROMPTS)) == wanted
        assert place.limits.sequences <= 2
        assert place.lines[0].startswith("Out of memory: at most ")
        room = 0
        ((status, reply),) = place.ask(body("a"))
        assert status == 413
        assert "needs more memory than there is" in reply["error"]


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("change", ["join", "keep"])
def test_a_change_of_the_batch_that_fails_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str, temperature: float
) -> None:
    from newskills.models.serving.hf.batch import Batch

    limits = [24 - number for number in range(len(PROMPTS))]
    with served(folder) as place:
        bodies = [
            body(prompt, limit, temperature=temperature) for prompt, limit in zip(PROMPTS, limits, strict=True)
        ]
        wanted = place.texts(*bodies)
        if temperature == 0:
            assert wanted == [alone(place, prompt, limit) for prompt, limit in zip(PROMPTS, limits, strict=True)]
        real, failures = getattr(Batch, change), list[str]()

        def once(batch: Batch, other: Any) -> None:
            changes = change == "join" or len(other) < len(batch.sequences)
            if changes and len(batch.sequences) > 1 and not failures:
                failures.append(change)
                raise torch.OutOfMemoryError("full")
            real(batch, other)

        monkeypatch.setattr(Batch, change, once)
        assert place.texts(*bodies) == wanted
        assert failures


def test_keys_and_values_stay_within_their_memory(folder: Path) -> None:
    """Of a cache for 60 tokens: sequences that grow beyond it wait, and go on where they were."""
    with served(folder) as big:
        wanted = [alone(big, prompt, 40) for prompt in PROMPTS]
        token = big.engine._token_bytes
    with served(folder, cache_bytes=60 * token) as place:
        assert place.texts(*(body(prompt, 40) for prompt in PROMPTS)) == wanted


def test_a_model_that_cannot_join_batches_is_generated_batch_by_batch(tmp_path: Path) -> None:
    """A state-space model has no keys and values."""
    from transformers import MambaConfig

    config = MambaConfig(vocab_size=700, hidden_size=32, num_hidden_layers=2, state_size=8, eos_token_id=1)
    with served(save_model(tmp_path / "mamba", config)) as place:
        assert "cannot be joined" in place.lines[0]
        equal = ["The quick", "The slow!"]
        texts = place.texts(*(body(prompt) for prompt in equal))
        assert texts == [alone(place, prompt, 12) for prompt in equal]
        ((_, reply),) = place.ask(body("The quick", 1, echo=True, logprobs=1))
        ids = place.loaded.tokenizer.encode("The quick")
        assert reply["choices"][0]["logprobs"]["token_logprobs"][1:-1] == pytest.approx(
            values_of(place, ids), abs=1e-4
        )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounding_is_no_reason_against_joining(folder: Path, dtype: str) -> None:
    with served(folder, dtype=dtype) as place:
        assert not place.lines
        assert place.texts(body("The quick"))


def test_a_model_that_takes_padding_for_text_is_found_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its replies would depend on what is beside them."""
    from newskills.models.serving.hf.batch import Forward

    real = Forward.next
    monkeypatch.setattr(Forward, "next", lambda self, ids, mask, cache: real(self, ids, mask * 0 + 1, cache))
    for dtype in ("float32", "bfloat16"):
        with served(folder, dtype=dtype) as place:
            assert "cannot be joined exactly" in place.lines[0]


def test_a_window_of_attention_is_kept(tmp_path: Path) -> None:
    """Mistral's layers look back 8 tokens; prompts are longer."""
    from transformers import MistralConfig

    sizes = {"vocab_size": 700, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    config: Any = MistralConfig(
        **sizes,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=8,
        initializer_range=0.4,
        eos_token_id=1,
    )
    with served(save_model(tmp_path / "mistral", config)) as place:
        assert place.texts(*(body(prompt, 20) for prompt in PROMPTS)) == [alone(place, p, 20) for p in PROMPTS]


def test_conversations_go_through_the_chat_template(llama: Served) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    asked = {"messages": messages, "max_tokens": 6, "temperature": 0, "logprobs": True, "top_logprobs": 2}
    ((status, reply),) = llama.ask(asked, path="/v1/chat/completions")
    assert status == 200
    prompt = "<|user|>Hello</s><|assistant|>"
    assert reply["choices"][0]["message"]["content"] == alone(llama, prompt, 6)
    content = reply["choices"][0]["logprobs"]["content"]
    assert len(content) == 6
    assert all(entry["logprob"] == pytest.approx(entry["top_logprobs"][0]["logprob"]) for entry in content)
    ((_, tokens),) = llama.ask({"messages": messages}, path="/tokenize")
    assert llama.loaded.decode(tokens["tokens"]) == prompt


@pytest.mark.parametrize(
    ("more", "status", "sentence"),
    [
        ({"logit_bias": {}}, 400, "unknown field `logit_bias`"),
        ({"n": 2}, 400, "Invalid enum value 2 - at `$.n`"),
        ({"response_format": {"type": "json_object"}}, 400, "unknown field `response_format`"),
        ({"max_tokens": 300}, 400, "maximum context length is 256 tokens"),
        ({"prompt": [9999]}, 400, "token id 9999"),
        ({"prompt": ""}, 400, "no tokens"),
        ({"temperature": -1}, 400, "`float` >= 0.0 - at `$.temperature`"),
        ({"top_p": 1.5}, 400, "`float` <= 1.0 - at `$.top_p`"),
        ({"min_p": -0.1}, 400, "`float` >= 0.0 - at `$.min_p`"),
        ({"repetition_penalty": -3}, 400, "at `$.repetition_penalty`"),
        ({"logprobs": -5}, 400, "`int` >= 0 - at `$.logprobs`"),
    ],
)
def test_what_cannot_be_done_is_refused(llama: Served, more: dict[str, Any], status: int, sentence: str) -> None:
    ((code, reply),) = llama.ask({**body("The quick"), **more})
    assert code == status
    assert sentence in reply["error"]


TURN = {"role": "user", "content": "Hello"}


@pytest.mark.parametrize(
    ("path", "data", "sentence"),
    [
        (
            "/v1/chat/completions",
            {"messages": [{**TURN, "content": [{"type": "text", "text": 5}]}]},
            "cannot be read",
        ),
        (
            "/v1/chat/completions",
            {"messages": [TURN], "chat_template_kwargs": {"chat_template": "{{ 1 }}"}},
            "cannot bring their own",
        ),
        ("/detokenize", {"tokens": [-1]}, "at `$.tokens[0]`"),
        ("/detokenize", {"tokens": [1 << 60]}, "at `$.tokens[0]`"),
        ("/v1/completions", b'{"user": ' + b"[" * 100_000, "not JSON"),
    ],
)
def test_a_body_that_is_malformed_gets_one_sentence(llama: Served, path: str, data: Any, sentence: str) -> None:
    sent = data if isinstance(data, bytes) else json.dumps(data).encode()
    reply = asyncio.run(llama.server.answer(HttpRequest("POST", path, "", {}, sent)))
    assert reply.status == 400
    assert sentence in json.loads(reply.body)["error"]


def test_a_temperature_next_to_nothing_takes_the_likeliest(llama: Served) -> None:
    coldest = {**body("The quick"), "temperature": 1e-40}
    assert llama.texts(coldest) == llama.texts(body("The quick"))


def test_logits_that_are_no_numbers_are_never_an_answer(folder: Path) -> None:
    with served(folder) as place:
        with torch.no_grad():
            place.loaded.model.model.norm.weight.fill_(torch.nan)
        ((status, reply),) = place.ask(body("The quick"))
        assert status == 500
        assert "not finite" in reply["error"]


def test_a_request_that_fails_takes_no_other_with_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model fails wherever one token is in the batch."""
    with served(folder) as place:
        bad = place.loaded.tokenizer.encode("It is 42")[-1]
        forward = place.engine._forward
        real = forward.read

        def choosy(ids: Any, *more: Any) -> Any:
            if (ids == bad).any():
                raise ValueError("no 42 here")
            return real(ids, *more)

        monkeypatch.setattr(forward, "read", choosy)
        prompts = [prompt for prompt in PROMPTS if bad not in place.loaded.tokenizer.encode(prompt)]
        replies = place.ask(*(body(prompt, 3) for prompt in (*prompts[:2], "It is 42", *prompts[2:])))
    statuses = [status for status, _ in replies]
    assert statuses.pop(2) == 500
    assert replies[2][1]["error"] == "The model failed: ValueError: no 42 here"
    texts = [reply["choices"][0]["text"] for status, reply in replies if status == 200]
    assert texts == [alone(place, prompt, 3) for prompt in prompts]
