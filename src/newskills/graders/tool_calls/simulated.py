# SPDX-License-Identifier: Apache-2.0
"""The simulated services of BFCL's conversations (files, travel, trading, …), from the distribution `bfcl-eval`.

Only their code runs; what a model says is a method's name and plain values. Methods are those that the benchmark
documents. Values that would make them work for minutes are refused.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.graders.tool_calls.calls import ParsedCall

MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
_STATELESS = frozenset(("MathAPI",))
_PLACE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_LARGEST, _LONGEST, _HIGHEST = 1e15, 100_000, 1000
INSTALL = "pip install --no-deps bfcl-eval==2026.3.23"


class Services:
    """The services of one conversation, with their state."""

    def __init__(self, names: Sequence[str], config: Row, *, long_context: bool = False) -> None:
        """Load the services, whose state at the beginning is in `config`.

        Raises ConfigError without bfcl-eval, KeyError for an unknown service.
        """
        self._services: dict[str, Any] = {}
        self._methods: dict[str, Any] = {}
        for name in names:
            service = _service_class(name)()
            if name not in _STATELESS:
                service._load_scenario(copy.deepcopy(config.get(name, {})), long_context=long_context)
            self._services[name] = service
            for method, bound in inspect.getmembers(service, predicate=inspect.ismethod):
                if not method.startswith("_"):
                    self._methods[method] = bound

    def call(self, called: ParsedCall) -> str:
        """Return what the service answers, or its refusal, as text. Whatever the arguments are, nothing is raised."""
        method = self._methods.get(called.name)
        if method is None:
            return f"Error during execution: there is no function {called.name}"
        if not _is_bearable([*called.positional, *called.arguments.values()]) or _is_steep(called.arguments):
            return "Error during execution: an argument is too large"
        try:
            result = method(*called.positional, **called.arguments)
        except Exception as error:  # noqa: BLE001 - the services raise anything; the leaderboard shows it to the model
            return f"Error during execution: {error}"
        if isinstance(result, dict):
            try:
                return json.dumps(result)
            except (TypeError, ValueError):
                return str(result)
        return str(result)

    def parameters(self, method: str) -> list[str]:
        """Return the names of the method's parameters. Raises KeyError where there is no such method."""
        return list(inspect.signature(self._methods[method]).parameters)

    def state(self) -> dict[str, Mapping[str, Any]]:
        """Return the public attributes, by service."""
        return {
            name: {key: value for key, value in vars(service).items() if not key.startswith("_")}
            for name, service in self._services.items()
        }


def check_services() -> None:
    """Check that bfcl-eval is installed. Raises ConfigError where it is not."""
    if find_spec("bfcl_eval") is None:
        raise _missing_package_error()


def _service_class(name: str) -> Any:
    try:
        return getattr(import_module(f"{_PLACE}.{MODULES[name]}"), name)
    except ImportError as error:
        raise _missing_package_error() from error


def _missing_package_error() -> ConfigError:
    return ConfigError(
        "The simulated services of BFCL's conversations (multi_turn_*) come with bfcl-eval, which is not installed.",
        hint=f"Type: {INSTALL} (its own dependencies are not needed), or name the other members in --benchmarks.",
    )


def _is_bearable(values: Sequence[Any]) -> bool:
    for value in values:
        if isinstance(value, list | tuple):
            if len(value) > _LONGEST or not _is_bearable(value):
                return False
        elif isinstance(value, dict):
            if not _is_bearable([*value, *value.values()]):
                return False
        elif isinstance(value, str):
            if len(value) > _LONGEST:
                return False
        elif isinstance(value, int | float) and not abs(value) <= _LARGEST:
            return False
    return True


def _is_steep(arguments: Row) -> bool:
    """Return whether the arguments have one by which work grows faster than their length."""
    steep = [arguments.get(name) for name in ("exponent", "precision", "decimal_places")]
    return any(isinstance(value, int | float) and abs(value) > _HIGHEST for value in steep)
