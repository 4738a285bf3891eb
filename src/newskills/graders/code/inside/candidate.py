# SPDX-License-Identifier: Apache-2.0
"""The process that holds the model's code: loads it, and does what the judge asks, one request at a time."""

from __future__ import annotations

import _sitebuiltins
import builtins
import os
import sys
import types

from newskills.graders.code.inside.values import decode, encode, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

REQUESTS, REPLIES = 3, 4
NAME = "candidate"
_MESSAGE = 300


class Objects:
    """What cannot travel, by number; one number for each object, which lives as long as the process."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self._numbers: dict[int, int] = {}

    def number(self, value: Any) -> int:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.held)
            self.held.append(value)
        return self._numbers[id(value)]


def main() -> None:
    """Serve until the judge is gone."""
    for name in ("exit", "quit"):
        setattr(builtins, name, _sitebuiltins.Quitter(name, ""))
    objects = Objects()
    send(REPLIES, encode("ready", objects.number))
    while (request := receive(REQUESTS)) is not None:
        try:
            reply = encode(["value", _run_request(request, objects)], objects.number)
        except BaseException as error:  # noqa: BLE001 - whatever the code raises is the answer
            reply = _encode_exception(error)
        try:
            send(REPLIES, reply)
        except ValueError as error:
            send(REPLIES, _encode_exception(error))
    os._exit(0)


def _run_request(request: bytes, objects: Objects) -> Any:
    what, *arguments = decode(request, objects.held.__getitem__)
    if what == "load":
        return _load_answer(*arguments)
    return _ACTIONS[what](*arguments)


_ACTIONS: dict[str, Callable[..., Any]] = {
    "call": lambda target, args, kwargs: target(*args, **kwargs),
    "change": lambda target, args, kwargs: [target(*args, **kwargs), [*args, *kwargs.values()]],
    "get": getattr,
    "set": setattr,
    "item": lambda target, key: target[key],
    "iter": iter,
    "next": next,
    "len": len,
    "bool": bool,
    "str": str,
}


def _load_answer(prefix: str, answer: str, prompt: str, names: list[str]) -> dict[str, Any]:
    """Run the code and return those of `names` that it defines, the first of which decides.

    An answer that does not define it, or that is no program by itself, is what follows the prompt.
    """
    try:
        program = _compile_answer(answer)
    except (SyntaxError, ValueError):
        if not prompt or not _is_compilable(prompt + answer):
            raise
    else:
        space = _module_namespace()
        exec(_compile_answer(prefix), space)  # noqa: S102 - this process is here for it
        exec(program, space)  # noqa: S102
        if names[0] in space or not prompt:
            return {name: space[name] for name in names if name in space}
    space = _module_namespace()
    exec(_compile_answer(prompt + answer), space)  # noqa: S102
    return {name: space[name] for name in names if name in space}


def _module_namespace() -> dict[str, Any]:
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    return module.__dict__


def _compile_answer(source: str) -> types.CodeType:
    return compile(source, f"<{NAME}>", "exec", dont_inherit=True)


def _is_compilable(source: str) -> bool:
    try:
        _compile_answer(source)
    except (SyntaxError, ValueError):
        return False
    return True


def _encode_exception(error: BaseException) -> bytes:
    try:
        text = str(error)[:_MESSAGE]
    except BaseException:  # noqa: BLE001 - this is the model's code, too
        text = ""
    base = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return encode(["raised", type(error).__name__, text, base.__name__], Objects().number)
