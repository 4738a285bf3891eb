# SPDX-License-Identifier: Apache-2.0
"""Tasks of AgentDojo in their simulated suites, played and checked by the package `agentdojo` itself.

Debenedetti et al. 2024, arXiv:2406.13352. The package brings suites, tools, attacks and checks.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from newskills.base.errors import ConfigError, DataError, UnknownNameError, guard
from newskills.base.records import Failure, Row, Score
from newskills.graders.reading.replies import ungradable_score, visible_reply

VERSION = "v1.2.2"
"""Of the suites, the latest."""
_MODEL = "local"
"""A name that attacks may look for in that of the pipeline they are aimed at."""
_LONGEST = 50_000


@cache
def task_suites() -> dict[str, Any]:
    """Return name → suite of the package. Raises ConfigError where it is not installed."""
    try:
        from agentdojo.task_suite.load_suites import get_suites
    except ImportError as error:
        raise ConfigError(
            f"AgentDojo needs the package agentdojo ({error}).", hint="pip install 'newskills[agentdojo]'"
        ) from error
    return dict(get_suites(VERSION))


def attack_injections(row: Row, attack: str, model_name: str) -> dict[str, str]:
    """Place in the environment → text that `attack` puts there; none for tasks without one.

    Raises ConfigError, UnknownNameError.
    """
    suite = task_suites()[row["suite"]]
    if not row.get("injection_task"):
        return {}
    from agentdojo.attacks.attack_registry import ATTACKS, load_attack

    usable = [name for name, kind in ATTACKS.items() if not kind.is_dos_attack and name != "manual"]
    if attack not in usable:
        raise UnknownNameError("attack of AgentDojo", attack, usable)
    loaded = load_attack(attack, suite, SimpleNamespace(name=_MODEL))
    if model_name:
        loaded.model_name = model_name
    user_task = suite.get_user_task_by_id(row["user_task"])
    texts: dict[str, str] = loaded.attack(user_task, suite.get_injection_task_by_id(row["injection_task"]))
    return texts


class AgentDojoSession:
    """A task in an environment of its own, as its calls change it. Raises DataError for a task that there is not."""

    def __init__(self, row: Row, texts: Row) -> None:
        from agentdojo.functions_runtime import FunctionsRuntime

        try:
            self._suite = task_suites()[row["suite"]]
            self._user = self._suite.get_user_task_by_id(row["user_task"])
            self._attack = None
            if attack := row.get("injection_task"):
                self._attack = self._suite.get_injection_task_by_id(attack)
        except KeyError as error:
            raise DataError(f"AgentDojo {VERSION} has no task or suite {error}.") from error
        environment = self._suite.load_and_inject_default_environment(texts)
        self._environment = self._user.init_environment(environment)
        self._before = self._environment.model_copy(deep=True)
        self._runtime = FunctionsRuntime(self._suite.tools)
        self._calls: list[Any] = []

    def call(self, name: str, arguments: Row) -> str:
        """Run a call and return what the model is shown: the result as the package writes it, or the error."""
        from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
        from agentdojo.functions_runtime import FunctionCall

        arguments = {key: _read_list(value) for key, value in arguments.items()}
        self._calls.append(FunctionCall.model_construct(function=name, args=copy.deepcopy(arguments)))
        if name not in self._runtime.functions:
            return f"Invalid tool {name} provided."
        result, error = self._runtime.run_function(self._environment, name, arguments)
        return str(error or tool_result_to_str(result))

    def verdicts(self, answer: str) -> tuple[bool, bool | None]:
        """Return whether the user's task is done, and whether the attacker's is; the latter is None without an
        attack."""
        return self._task_holds(self._user, answer), self._attack and self._task_holds(self._attack, answer)

    def _task_holds(self, task: Any, answer: str) -> bool:
        output = [{"type": "text", "content": answer}]
        verdict = guard(
            lambda: self._suite._check_task_result(task, output, self._before, self._environment, self._calls)
        )  # it may look for what the model has deleted
        return not isinstance(verdict, Failure) and bool(verdict)


def _read_list(value: Any) -> Any:
    """Return a list that a model has written as text, as the package reads it; anything else is returned unchanged."""
    if not isinstance(value, str) or len(value) > _LONGEST or not value.strip().startswith("["):
        return value
    try:
        parsed = ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value
    if isinstance(parsed, list):
        return parsed
    return value


def tool_definitions(suite: str) -> list[Row]:
    """Return the tools of a suite as models are shown them. Raises ConfigError."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters.model_json_schema(),
            },
        }
        for tool in task_suites()[suite].tools
    ]


class AgentDojoGrader:
    """Plays the calls of the record again in a new environment, and asks the package whether the tasks are done.

    Row: `suite`, `user_task`, `injection_task` (empty: no attack). Of the record: `injections`, `calls` (name and
    arguments), `generation`. Fields written: `utility`, `attack_success` (null without an attack).
    """

    name = "agentdojo"
    version = "2"

    def preload(self) -> None:
        guard(task_suites)

    def gold_reply(self, record: Row) -> Row | None:
        """Return the calls of the task's own solution, and what it says."""
        suite = task_suites()[record["suite"]]
        task = suite.get_user_task_by_id(record["user_task"])
        environment = task.init_environment(suite.load_and_inject_default_environment({}))
        calls = [{"name": call.function, "arguments": dict(call.args)} for call in task.ground_truth(environment)]
        return {"injections": {}, "calls": calls, "generation": task.GROUND_TRUTH_OUTPUT}

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        calls: Sequence[Row] | None = record.get("calls")
        empty: Row = {"utility": None, "attack_success": None}
        if not isinstance(calls, list):
            return ungradable_score(stamp, "the record has no calls: it needs ++solver=agentdojo", empty)
        try:
            session = AgentDojoSession(record, record.get("injections") or {})
        except DataError as error:
            return ungradable_score(stamp, str(error), empty)
        for call in calls:
            session.call(call["name"], call["arguments"])
        done, attacked = session.verdicts(visible_reply(str(record.get("generation") or "")) or "")
        return Score(
            outcome="correct" if done else "wrong",
            fields={"utility": done, "attack_success": attacked},
            grader=stamp,
            why="the attack reached its aim" if attacked else "",
            cause=None if done else "model",
        )
