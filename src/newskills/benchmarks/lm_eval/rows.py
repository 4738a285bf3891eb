# SPDX-License-Identifier: Apache-2.0
"""Documents of a task of lm_eval → rows: each with its document and the requests that lm_eval makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.lm_eval.building import HarnessTask, HarnessWishes, build_task, facts_of, task_error
from newskills.base.lm_eval.chats import marked_conversation
from newskills.base.lm_eval.package import at_work, require_package
from newskills.base.records import Row

LOGLIKELIHOOD, ROLLING, GENERATE = "loglikelihood", "loglikelihood_rolling", "generate_until"


def task_rows(origin: HarnessTask, wishes: HarnessWishes, offline: bool, split: str) -> Iterator[Row]:
    """Yield a row for each document, in the order of the task. Raises ConfigError, DataError."""
    require_package()
    with at_work(offline=offline):
        rows = list(_task_rows(origin, wishes))
    yield from rows


def _task_rows(origin: HarnessTask, wishes: HarnessWishes) -> Iterator[Row]:
    task = build_task(origin, wishes)
    template = marked_conversation if wishes.apply_chat_template else None
    usual = task.get_config("generation_kwargs") or {}
    facts: Row | None = None
    try:
        for number, doc in task.doc_iterator():
            context = task.fewshot_context(
                doc,
                num_fewshot=task.config.num_fewshot or 0,
                system_instruction=wishes.system_instruction,
                apply_chat_template=wishes.apply_chat_template,
                fewshot_as_multiturn=wishes.as_turns,
                chat_template=template,
                gen_prefix=task.doc_to_prefix(doc),
            )
            made = task.construct_requests(
                doc=doc,
                ctx=context,
                metadata=(task.config["task"], number, task.config.repeats),
                apply_chat_template=wishes.apply_chat_template,
                chat_template=template,
            )
            if not isinstance(made, list):
                made = [made]
            instances = sorted(made, key=lambda instance: instance.idx)
            facts = facts or msgspec.to_builtins(facts_of(task, doc))
            yield {
                "id": str(number),
                **_document_requests(instances, usual, origin),
                "doc": _checked_document(doc, origin),
                "question": _question_text(task, doc),
                "expected_answer": _target_text(task, doc),
                "task": {"origin": origin, "wishes": wishes, "facts": facts},
            }
    except (ConfigError, DataError):
        raise
    except Exception as error:
        raise task_error(error, origin, {}) from error


def _document_requests(instances: Sequence[Any], usual: Row, origin: HarnessTask) -> Row:
    """Return the requests of a document; a context that several share stands there once."""
    contexts: dict[str, int] = {}
    requests: list[Row] = []
    for instance in instances:
        kind, arguments = instance.request_type, instance.args
        if kind == ROLLING:
            requests.append({"kind": kind, "text": arguments[0]})
            continue
        context, more = arguments[0], arguments[1]
        if not isinstance(context, str) or len(arguments) != 2:
            raise ConfigError(f"{origin.full_name} makes requests that are not texts; this is not supported.")
        request: Row = {"kind": kind, "context": contexts.setdefault(context, len(contexts))}
        if kind == LOGLIKELIHOOD:
            request["continuation"] = more
        elif kind == GENERATE:
            request |= _generation_fields(dict(more), usual)
        else:
            raise ConfigError(f"{origin.full_name} makes requests of the kind {kind}, which is not done here.")
        requests.append(request)
    return {"contexts": list(contexts), "requests": requests, "repeats": int(instances[0].repeats or 1)}


def _generation_fields(settings: Row, usual: Row) -> Row:
    """Return where generation ends, and the settings that differ from those of the task."""
    until = settings.pop("until", None)
    differing = {name: value for name, value in settings.items() if name not in usual or usual[name] != value}
    made: Row = {"until": [until] if isinstance(until, str) else list(until or ())}
    if differing:
        made["settings"] = differing
    return made


def _checked_document(doc: Any, origin: HarnessTask) -> Any:
    """Return a document as JSON. Raises DataError for one that would not come back as it is."""
    items = doc.items() if isinstance(doc, dict) else [("", doc)]
    for name, value in items:
        try:
            same = msgspec.json.decode(msgspec.json.encode(value)) == value
        except (TypeError, ValueError, OverflowError):
            same = False
        if not same:
            raise DataError(
                f"{origin.full_name}: the field '{name}' of its documents is a {type(value).__name__} that JSON does "
                "not hold, so its records could not be scored again."
            )
    return doc


def _question_text(task: Any, doc: Any) -> str:
    """Return what a document asks, without examples, for who looks at records; empty where that is no text."""
    try:
        text = task.doc_to_text(doc)
    except Exception:  # noqa: BLE001 - code of a task may raise anything, and this is only shown
        return ""
    if isinstance(text, str):
        return text
    return ""


def _target_text(task: Any, doc: Any) -> str:
    """Return the right answer as a text, for who looks at records; empty where the task has none."""
    try:
        target = task.doc_to_target(doc)
        if type(target) is int and task.config.doc_to_choice is not None:
            return str(task.doc_to_choice(doc)[target])
    except Exception:  # noqa: BLE001 - only shown; tasks with a scorer of their own need not have one
        return ""
    if isinstance(target, str):
        return target
    return msgspec.json.encode(target, enc_hook=str).decode()


def rows_of(origin: HarnessTask, wishes: HarnessWishes, *, offline: bool) -> partial[Iterator[Row]]:
    """Return the function that makes the rows of a split."""
    return partial(task_rows, origin, wishes, offline)
