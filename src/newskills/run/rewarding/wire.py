# SPDX-License-Identifier: Apache-2.0
"""What trainers post to the reward server, and what they take.

ours       {"items": [{"problem": …, "expected_answer": …, "generation": …}]}: the record of an evaluation each, with
           the fields of its row beside those of the generation, or in "row"
           → {"rewards": [1.1, null], "items": [details]}
OpenRLHF   {"query": [prompt + answer], "prompts": […], "labels": […]}
           → {"rewards": […], "scores": […], "extra_logs": {…}} (`--remote_rm_url`; openrlhf/utils/remote_rm_utils.py)
slime      {"prompt": …, "response": …, "label": …} → a number (`--rm-type remote_rm --rm-url`; slime/rollout/rm_hub)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.type_errors import type_fault
from newskills.run.rewarding.reward import RewardItem, answered_record
from newskills.train.loops.samples import Judged

T = TypeVar("T")
END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<｜end▁of▁sentence｜>",
)
"""Special tokens with which answers end that trainers decode with them (OpenRLHF, slime)."""
TOKENS_FIELD = "num_generated_tokens"


class _Items(Struct, forbid_unknown_fields=True):
    items: list[Row]


class _OpenRlhf(Struct):
    query: list[str]
    prompts: list[str]
    labels: list[Any]


class _Slime(Struct):
    prompt: str | list[Row]
    response: str
    label: Any = None


def read_items(body: bytes) -> list[RewardItem]:
    """Read the items of a request. Raises DataError with the sentence for the client."""
    return [
        _sampled_item(item, f"items[{place}]") for place, item in enumerate(_decode_request(body, _Items).items)
    ]


def read_openrlhf(body: bytes) -> list[RewardItem]:
    """Read the items of a request of OpenRLHF; the answer is what follows the prompt in the query. Raises DataError."""
    batch = _decode_request(body, _OpenRlhf)
    sizes = {len(batch.query), len(batch.prompts), len(batch.labels)}
    if len(sizes) > 1:
        raise DataError(
            f"The request has {len(batch.query)} queries, {len(batch.prompts)} prompts and {len(batch.labels)} labels."
        )
    triples = zip(batch.query, batch.prompts, batch.labels, strict=True)
    return [
        _labelled_item(prompt, _answer_behind_prompt(query, prompt, place), label)
        for place, (query, prompt, label) in enumerate(triples)
    ]


def read_slime(body: bytes) -> list[RewardItem]:
    """Read the item of a request of slime. Raises DataError."""
    item = _decode_request(body, _Slime)
    if isinstance(item.prompt, str):
        return [_labelled_item(item.prompt, item.response, item.label)]
    questions = [str(message.get("content")) for message in item.prompt if message.get("role") == "user"]
    question = questions[-1] if questions else ""
    return [_labelled_item(question, item.response, item.label)]


def items_answer(grader: str, judged: Sequence[Judged]) -> Row:
    return {"grader": grader, "rewards": [item.reward for item in judged], "items": judged}


def openrlhf_answer(judged: Sequence[Judged]) -> Row:
    """Return the answer for OpenRLHF: `scores` are 1 for correct and 0 for wrong, `extra_logs` are the
    components."""
    names = dict.fromkeys(name for item in judged for name in item.components)
    return {
        "rewards": [item.reward for item in judged],
        "scores": [float(item.correct) for item in judged],
        "extra_logs": {name: [item.components.get(name, 0.0) for item in judged] for name in names},
    }


def without_ending(text: str) -> str:
    """Return `text` without the special tokens at its end."""
    while True:
        bare = text.rstrip()
        ending = next((ending for ending in END_TOKENS if bare.endswith(ending)), None)
        if ending is None:
            return text
        text = bare.removesuffix(ending)


def _decode_request(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise DataError(f"The request is not valid: {type_fault(error)}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"The body of the request is not a JSON object: {error}.") from error


def _sampled_item(item: Row, where: str) -> RewardItem:
    row = item.pop("row", {})
    if not isinstance(row, dict):
        raise DataError(f"{where}: `row` is not an object.")
    record = {**row, **item}
    if not isinstance(record.get("generation"), str):
        raise DataError(f"{where} has no `generation`; its keys are {', '.join(sorted(record)) or 'none'}.")
    tokens = record.get(TOKENS_FIELD)
    token_count = tokens if isinstance(tokens, int) else None
    return RewardItem(record=record, tokens=token_count)


def _labelled_item(prompt: str, response: str, label: object) -> RewardItem:
    """Make an item of a label: the expected answer, or an object with all fields of the row that the grader needs."""
    label_fields = label if isinstance(label, dict) else {"expected_answer": label}
    row = {"problem": prompt, **label_fields}
    return RewardItem(record=answered_record(row, without_ending(response), None))


def _answer_behind_prompt(query: str, prompt: str, place: int) -> str:
    """Return the answer behind the prompt in `query`: decoding may have changed the blanks around the prompt, and put a
    token before it."""
    _, prompt_part, answer = query.partition(prompt.strip())
    if not prompt_part:
        raise DataError(
            f"query[{place}] does not contain its prompt, so its answer cannot be found.",
            hint="Send the prompts exactly as they are in the queries.",
        )
    return answer
