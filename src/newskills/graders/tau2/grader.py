# SPDX-License-Identifier: Apache-2.0
"""What a conversation was worth: the state it left, what it said, whom it called (tau2-bench, arXiv:2506.07982)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import DataError, UnknownNameError
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import ungradable_score
from newskills.graders.tau2.airline import Airline
from newskills.graders.tau2.mock import TaskList
from newskills.graders.tau2.retail import Shop
from newskills.graders.tau2.service import ToolService
from newskills.graders.tau2.tables import TableService
from newskills.graders.tau2.telecom import Telecom

SERVICES: dict[str, type[ToolService]] = {"airline": Airline, "mock": TaskList, "retail": Shop, "telecom": Telecom}
ENDED = "user_stop"
"""How a conversation ends that counts: the simulated user says so."""
_USUAL_BASIS = ("DB", "COMMUNICATE")


class Tau2Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=tau2`."""

    data: Annotated[str, Meta(description="folder with <domain>.json: the data of the services")] = ""


class Tau2Grader:
    """Replays the calls of `conversation` on the task's service, and compares with the task's own actions.

    Row: `domain`, `initial_state`, `evaluation_criteria`. Of the record: `conversation` (messages; calls as
    `tool_calls`: name and arguments), `ended`, `nl_judgements` (a verdict for each assertion in words). All parts that
    the task names (`reward_basis`) must hold: DB, ENV_ASSERTION, ACTION, COMMUNICATE, NL_ASSERTION.
    Fields written: `reward`, 0 or 1 (null: unscored), `reward_parts`.
    """

    name = "tau2"
    version = "2"
    Config = Tau2Config

    def __init__(self, config: Tau2Config = Tau2Config()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._stamp = f"{self.name}@{self.version}"

    def gold_reply(self, record: Row) -> Row | None:
        """Return the task's own actions, and what is to be said; None where they leave an assertion open: beside the
        state that they lead to, assertions may ask for more."""
        criteria = record["evaluation_criteria"]
        basis = criteria.get("reward_basis") or ()
        if "ENV_ASSERTION" in basis and ("DB" in basis or not criteria.get("actions")):
            return None
        talk: list[Row] = [
            {"role": action.get("requestor") or "assistant", "content": None, "tool_calls": [action]}
            for action in criteria.get("actions") or ()
        ]
        talk.append({"role": "assistant", "content": "\n".join(criteria.get("communicate_info") or ())})
        judged = [True] * len(criteria.get("nl_assertions") or ())
        return {"conversation": talk, "ended": ENDED, "nl_judgements": judged}

    def grade(self, record: Row) -> Score:
        talk = record.get("conversation")
        if not isinstance(talk, list):
            return ungradable_score(self._stamp, "the record has no conversation", _score_fields(None, {}))
        if record.get("ended") != ENDED:
            why = f"the conversation did not come to its end: {record.get('ended')}"
            return self._make_score(False, {}, why)
        try:
            parts = self.parts(record, talk)
        except (DataError, KeyError, TypeError, ValueError, OSError) as error:
            return ungradable_score(self._stamp, f"the task cannot be replayed: {error}", _score_fields(None, {}))
        if False in parts.values():
            return self._make_score(
                False, parts, ", ".join(name for name, holds in parts.items() if holds is False)
            )
        if None in parts.values():
            score = ungradable_score(
                self._stamp, "the assertions in words have no verdict", _score_fields(None, parts)
            )
            score.cause = "judge"
            return score
        return self._make_score(True, parts, "all parts hold")

    def parts(self, record: Row, talk: Sequence[Row]) -> dict[str, bool | None]:
        """Return part of the basis → whether it holds. Raises what a task that does not fit raises."""
        criteria = record["evaluation_criteria"]
        checks: dict[str, Callable[[], bool | None]] = {
            "DB": lambda: self._same_state(record, criteria, talk),
            "ENV_ASSERTION": lambda: self._assertions_hold(record, criteria, talk),
            "ACTION": lambda: all(_was_called(action, talk) for action in criteria.get("actions") or ()),
            "COMMUNICATE": lambda: all(_was_said(info, talk) for info in criteria.get("communicate_info") or ()),
            "NL_ASSERTION": lambda: _in_words(criteria.get("nl_assertions") or (), record.get("nl_judgements")),
        }
        return {part: checks[part]() for part in criteria.get("reward_basis") or _USUAL_BASIS}

    def _same_state(self, record: Row, criteria: Row, talk: Sequence[Row]) -> bool:
        if criteria.get("actions") is None:
            return True
        gold = start_service(record, self.config.data)
        for action in criteria["actions"]:
            gold.call(action.get("requestor") or "assistant", action["name"], action["arguments"])
        return self._service_after(record, talk).state() == gold.state()

    def _assertions_hold(self, record: Row, criteria: Row, talk: Sequence[Row]) -> bool:
        service = self._service_after(record, talk)
        holds = [_assertion_holds(service, assertion) for assertion in criteria.get("env_assertions") or ()]
        return all(holds)

    def _service_after(self, record: Row, talk: Sequence[Row]) -> ToolService:
        service = start_service(record, self.config.data)
        for caller, name, arguments in conversation_calls(talk):
            service.call(caller, name, arguments)
        return service

    def _make_score(self, right: bool, parts: dict[str, bool | None], why: str) -> Score:
        return Score(
            outcome="correct" if right else "wrong",
            fields=_score_fields(float(right), parts),
            grader=self._stamp,
            why=why,
            cause=None if right else "model",
        )


def start_service(record: Row, folder: str) -> ToolService:
    """Return the service as the task finds it. Raises DataError, UnknownNameError, OSError."""
    domain = str(record["domain"])
    if domain not in SERVICES:
        raise UnknownNameError("service of tau2-bench", domain, sorted(SERVICES))
    place = Path(folder) / f"{domain}.json"
    kind, stored = SERVICES[domain], _decode_file(place, place.stat().st_mtime_ns)
    if not issubclass(kind, TableService):
        stored = msgspec.json.decode(msgspec.json.encode(stored))
    service = kind(stored["data"], stored.get("user_data") or {})
    initial = record.get("initial_state") or {}
    if initial.get("initialization_data"):
        service.merge(initial["initialization_data"])
    for action in initial.get("initialization_actions") or ():
        service.act(action)
    for caller, name, arguments in conversation_calls(initial.get("message_history") or ()):
        service.call(caller, name, arguments)
    return service


@lru_cache(maxsize=4)
def _decode_file(place: Path, changed: int) -> Row:
    return msgspec.json.decode(place.read_bytes(), type=dict[str, Any])


def conversation_calls(talk: Sequence[Row]) -> Iterator[tuple[str, str, Any]]:
    """Yield (caller, function, arguments) of each call, in order."""
    for message in talk:
        for call in message.get("tool_calls") or ():
            yield message["role"], call["name"], call.get("arguments")


def _was_called(action: Row, talk: Sequence[Row]) -> bool:
    """Return whether the action was called, with the arguments that count (null: all)."""
    wanted, caller = action["arguments"], action.get("requestor") or "assistant"
    counting = action.get("compare_args")
    names = list(wanted) if counting is None else counting
    return any(
        (who, name) == (caller, action["name"])
        and isinstance(arguments, dict)
        and all(arguments.get(key) == wanted.get(key) for key in names)
        and (counting is not None or set(arguments) <= set(wanted))
        for who, name, arguments in conversation_calls(talk)
    )


def _was_said(info: str, talk: Sequence[Row]) -> bool:
    """Return whether the agent said it, beside a call too: so the benchmark counts."""
    wanted = str(info).lower().replace(",", "")
    texts = (message.get("content") for message in talk if message["role"] == "assistant")
    return any(isinstance(text, str) and wanted in text.lower().replace(",", "") for text in texts)


def _in_words(assertions: Sequence[str], judged: object) -> bool | None:
    if not assertions:
        return True
    if not isinstance(judged, list) or len(judged) != len(assertions) or None in judged:
        if isinstance(judged, list) and False in judged:
            return False
        return None
    return all(judged)


def _assertion_holds(service: ToolService, assertion: Row) -> bool:
    """Return whether an assertion holds; one about something that is not there does not hold."""
    try:
        return bool(service.act(assertion) == assertion.get("assert_value", True))
    except DataError:
        if not callable(getattr(service, assertion["func_name"], None)):
            raise
        return False


def _score_fields(reward: float | None, parts: dict[str, bool | None]) -> Row:
    return {"reward": reward, "reward_parts": parts}
