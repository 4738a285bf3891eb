# SPDX-License-Identifier: Apache-2.0
"""API-Bank's own comparison of a call with the one of the dialogue (Li et al. 2023, arXiv:2304.08244).

The authors run both on the same small databases, and compare what each function says of it: some arguments as they
are, some without case or as dates, texts by the words that they share. Results are equal where the arguments that are
compared are, so that nothing has to be run; what could only be told by running it is listed on the benchmark's page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import verdict_score
from newskills.graders.tool_calls.calls import answered_calls
from newskills.graders.tool_calls.wanted import wanted_calls

Same = Callable[[str, str], bool]
_SHARED = 0.5
"""Words that two texts have in common, of all words in them: more are needed."""
_TIME, _DATE = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"
_YEAR = re.compile(r"^\d{1,4}(?=-)")


def _same_by(form: Callable[[str], object]) -> Same:
    def same(text: str, other: str) -> bool:
        value = form(text)
        return value is not None and value == form(other)

    return same


def _time_reader(*forms: str, shown: str = "") -> Callable[[str], object]:
    """Make a reader of times of these forms; it returns None for what is none.

    Blanks around and a year of fewer digits do not count.
    """

    def read(text: str) -> object:
        if text.count("-") == 2:
            text = _YEAR.sub(lambda year: year[0].zfill(4), text.strip())
        else:
            text = text.strip()
        for form in forms:
            try:
                moment = datetime.strptime(text, form)
            except ValueError:
                continue
            if shown:
                return moment.strftime(shown)
            return moment
        return None

    return read


def _shared_words(fold: Callable[[str], str]) -> Same:
    def same(text: str, other: str) -> bool:
        words, wanted = set(fold(text).split(" ")), set(fold(other).split(" "))
        return bool(text.strip()) and len(words & wanted) / len(words | wanted) > _SHARED

    return same


_AS_IS: Same = str.__eq__
_STRIPPED, _LOWER = _same_by(str.strip), _same_by(lambda text: text.strip().lower())
_UPPER = _same_by(lambda text: text.strip().upper())
_AT, _ON = _same_by(_time_reader(_TIME)), _same_by(_time_reader(_DATE))
_DAY = _same_by(_time_reader(_DATE, "%m-%d", shown="%m-%d"))
_FORMULA = _same_by(lambda text: text.replace(" ", ""))
_WORDS, _WORDS_FOLDED = _shared_words(str), _shared_words(str.lower)


def _accept_anything(text: str, other: str) -> bool:
    return True


def _not_blank(text: str, other: str) -> bool:
    return bool(text.strip())


_COMPARED: Mapping[str, Mapping[str, Same]] = {
    **{name: {"content": _WORDS} for name in ("AddAgenda", "ModifyAgenda", "QueryAgenda")},
    **{name: {"meeting_topic": _WORDS} for name in ("AddMeeting", "ModifyMeeting", "QueryMeeting")},
    **{name: {"content": _WORDS_FOLDED} for name in ("AddReminder", "ModifyReminder", "QueryReminder")},
    **{name: {"name": _LOWER} for name in ("AddScene", "DeleteScene", "ModifyScene", "QueryScene")},
    "AppointmentRegistration": {"patient_name": _STRIPPED, "date": _ON, "doctor_name": _STRIPPED},
    "Calculator": {"formula": _FORMULA},
    "CancelRegistration": {"appointment_id": _STRIPPED},
    "DeleteAgenda": {"location": _accept_anything},
    "DeleteReminder": {"content": _not_blank},
    "DocumentQA": {"url": _STRIPPED, "question": _STRIPPED},
    "EmergencyKnowledge": {"symptom": _LOWER},
    "ModifyRegistration": {
        "appointment_id": _STRIPPED,
        "new_appointment_date": _ON,
        "new_appointment_doctor": _STRIPPED,
    },
    "PlayMusic": {"music_name": _LOWER},
    "SearchEngine": {"keyword": _LOWER},
    "QueryHealthData": {"user_id": _UPPER, "start_time": _AT, "end_time": _AT},
    "QueryHistoryToday": {"date": _DAY},
    "QueryRegistration": {"patient_name": _STRIPPED, "date": _ON},
    "QueryStock": {"stock_code": _UPPER, "date": _ON},
    "RecordHealthData": {"user_id": _UPPER, "time": _AT, "health_data": _not_blank},
    "SendEmail": {"receiver": _LOWER, "subject": _STRIPPED, "content": _STRIPPED},
    "SymptomSearch": {"symptom": _LOWER},
    **{name: {"device_id": _LOWER, "time": _AT} for name in ("TimedSwitch", "CancelTimedSwitch")},
    "Wiki": {"keyword": _same_by(lambda text: text.replace("_", " ").strip().lower())},
}
"""Function → how arguments are compared; those that are not named, as they are."""


class ApiBankGrader:
    """The answer is one call of the wanted function with the wanted arguments. Field written: `is_correct`."""

    name = "api_bank"
    version = "1"
    answer_keys = ("generation", "tool_calls")

    def gold_reply(self, record: Row) -> Row:
        return {"tool_calls": wanted_calls(record)}

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        calls, readable = answered_calls(record)
        if not readable or len(calls) != 1:
            silent = readable and not calls and not str(record.get("generation") or "").strip()
            why = f"{len(calls)} calls in place of 1"
            if not readable:
                why = "a call cannot be read"
            cut = record.get("finish_reason") == "length"
            return Score(
                outcome="no_answer" if silent or (cut and not calls) else "wrong",
                fields={"is_correct": False},
                grader=stamp,
                why=why,
                cause="truncation" if cut else "model",
            )
        ((name, wanted),) = record["ground_truth"][0].items()
        why = _call_problem(calls[0].name, calls[0].arguments, name, wanted)
        return verdict_score(stamp, not why, {"is_correct": not why}, why or "as wanted")


def _call_problem(name: str, arguments: Mapping[str, Any], wanted_name: str, wanted: Mapping[str, Any]) -> str:
    """Return what is wrong with the call; empty where it is accepted."""
    if name != wanted_name:
        return f"{name} in place of {wanted_name}"
    if set(arguments) != set(wanted):
        return f"arguments {', '.join(arguments)} in place of {', '.join(wanted)}"
    compared = _COMPARED.get(name, {})
    for argument, (value, *_) in wanted.items():
        if not compared.get(argument, _AS_IS)(str(arguments[argument]), str(value)):
            return f"{argument}: {str(arguments[argument])[:80]!r}, not {str(value)[:80]!r}"
    return ""
