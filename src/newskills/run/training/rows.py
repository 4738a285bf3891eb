# SPDX-License-Identifier: Apache-2.0
"""The reader of training rows: every form that people have → texts, or a conversation that ends with a reply.

| form | keys |
|---|---|
| chat | `messages`, and `tools`, `system`, `chat_template_kwargs` |
| ShareGPT | `conversations` of `from` and `value` |
| Alpaca | `instruction`, `input`, `output`, `system` |
| prompt and completion (TRL) | `prompt`, `completion`: texts or messages |
| texts | `input`, `output` |
| one text (TRL's language modeling) | `text` |

Pairs and labelled replies (TRL's preference and unpaired preference) are read in `preferences`, by the same functions.
What a row says is used, or refused by name with what to do.
"""

from __future__ import annotations

from typing import Any

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.run.training.conversations import REPLY, check_targets, template_of, tools_of, turns_of
from newskills.train.data.row_fields import REASONING, SYSTEM, TOLD, field_text, reasoning_of, refuse_lost

MEDIA = ("images", "image", "videos", "audios", "audio")
TEXT_ONLY = "These trainers train on text; remove the field, or the row."
CONVERSATIONS = ("messages", "conversations")
FORMS = (
    "{messages}, {conversations}, {instruction, input, output}, {prompt, completion}, {input, output} and {text}"
)
_AS_MESSAGES = (
    "Texts are taken as they are: put it into `{text}`, or write the row as `messages`, or remove the field."
)
_OF_OTHERS = {
    "chosen": "Rows with better and worse replies: ns dpo or ns reward_model.",
    "completions": "Labels of single steps are not trained on.",
    "input_ids": "Rows are texts or messages; the tokens of this model are made of them.",
}
"""Fields that say what a row of another kind of training is for → where it belongs."""


def training_row(row: Row, where: str) -> Row:
    """Return `{input, output}` or `{text}`, which are taken as they are, or `{messages, tools}`; beside it
    `chat_template_kwargs` and `unfinished`, where a row says so.

    Messages hold their reasoning as `reasoning_content`; the last one is a reply. Raises DataError for a row of no
    form, with nothing to train on, or with a field that would be lost.
    """
    refuse_lost(row, MEDIA, "", where, TEXT_ONLY)
    turns = _row_turns(row, where)
    if turns is None:
        return _row_texts(row, where)
    check_targets(turns, where)
    made: Row = {"messages": turns, "tools": tools_of(row, where)}
    template = template_of(row, where)
    if template:
        return {**made, "chat_template_kwargs": template}
    return made


def alpaca_messages(row: Row, where: str) -> list[Row]:
    """Return what a row with an `instruction` asks, as turns: system, and the instruction with its input below.

    Nothing for a row without one, or whose `input` holds it already. Raises DataError for a `history`.
    """
    instruction, addition = field_text(row, "instruction"), field_text(row, "input")
    if not instruction or instruction.strip() in addition:
        return []
    refuse_lost(row, ("history",), "", where, "Write the row as `messages`, or remove the field.")
    question = f"{instruction}\n\n{addition}" if addition else instruction
    return with_system([{"role": "user", "content": question}], row, where)


def with_system(messages: list[Row], row: Row, where: str) -> list[Row]:
    """Return `messages` behind the system message that `row` keeps in a key of its own. Raises DataError for two."""
    system = field_text(row, *SYSTEM)
    if not system:
        return messages
    first = messages[0] if messages and isinstance(messages[0], dict) else {}
    if first.get("role") not in ("system", "developer"):
        return [{"role": "system", "content": system}, *messages]
    refuse_lost(
        row,
        SYSTEM,
        str(first.get("content")),
        where,
        "The conversation has a system message of its own: put both into that one, or remove the field.",
    )
    return messages


def _row_turns(row: Row, where: str) -> list[Row] | None:
    """Return the turns of a row that is a conversation, whatever its form; None for texts. Raises DataError."""
    for name in CONVERSATIONS:
        if row.get(name) is not None:
            return with_system(turns_of(row[name], where, name), row, where)
    if (messages := alpaca_messages(row, where)) and isinstance(row.get("output"), str):
        return turns_of([*messages, {"role": REPLY, "content": row["output"], **_reasoning_field(row)}], where)
    if isinstance(row.get("prompt"), list) and row.get("completion") is not None:
        return _prompt_and_completion(row, where)
    return None


def _prompt_and_completion(row: Row, where: str) -> list[Row]:
    """Return the turns of a prompt and of what follows it; of several in a completion, all replies count."""
    _check_labelled(row, where)
    completion = row["completion"]
    if isinstance(completion, str):
        completion = [{"role": REPLY, "content": completion}]
    before, after = turns_of(row["prompt"], where, "prompt"), turns_of(completion, where, "completion")
    if len(after) > 1:
        before = [{**turn, "weight": 0} for turn in before]
        after = [{**turn, "weight": turn.get("weight", int(turn["role"] == REPLY))} for turn in after]
    return with_system([*before, *after], row, where)


def _row_texts(row: Row, where: str) -> Row:
    """Return the texts of a row. Raises DataError for none."""
    first, second = next(
        (
            names
            for names in (("input", "output"), ("prompt", "completion"))
            if all(isinstance(row.get(name), str) for name in names)
        ),
        ("text", "text"),
    )
    before, output = row.get(first), row.get(second)
    if not isinstance(before, str) or not isinstance(output, str):
        raise _without_form(row, where)
    if first == "prompt":
        _check_labelled(row, where)
    if not before or not output:
        empty = second if before else first
        raise DataError(f"{where}: `{empty}` is empty, so there is nothing to train on.")
    refuse_lost(row, TOLD, before, where, _AS_MESSAGES.format(text=first))
    if not all(tool["function"]["name"] in before for tool in tools_of(row, where) or ()):
        refuse_lost(row, ("tools",), before, where, _AS_MESSAGES.format(text=first))
    if reasoning_of(row):
        refuse_lost(row, REASONING, output, where, _AS_MESSAGES.format(text=second))
    unfinished = {"unfinished": True} if row.get("finish_reason") == "length" else {}
    if first == second:
        return {"text": output, **unfinished}
    return {"input": before, "output": output, **unfinished}


def _check_labelled(row: Row, where: str) -> None:
    if isinstance(row.get("label"), bool):
        raise DataError(f"{where}: the field `label` would be lost.", hint="Good and bad replies: ns kto.")


def _without_form(row: Row, where: str) -> DataError:
    keys = ", ".join(sorted(row)) or "none"
    for name, hint in _OF_OTHERS.items():
        if row.get(name) is not None:
            return DataError(
                f"{where} is not a row to fine-tune on: it has `{name}`; its keys are {keys}.", hint=hint
            )
    return DataError(
        f"{where} has neither `input` and `output` nor `messages`; its keys are {keys}.",
        hint=f"Rows are {FORMS}; ns prepare_training_data makes them.",
    )


def _reasoning_field(row: Row) -> dict[str, Any]:
    reasoning = reasoning_of(row)
    if reasoning:
        return {"reasoning_content": reasoning}
    return {}
