# SPDX-License-Identifier: Apache-2.0
"""What a command is: options, `++` schema, and what it does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.garbage import keep_imports
from newskills.config.command_line import Parsed, parse
from newskills.config.fields import leaves
from newskills.config.help import command_help

if TYPE_CHECKING:
    from newskills.launch.clusters.config import ClusterConfig
    from newskills.pipelines.submission.prepared import PreparedSubmission

O = TypeVar("O", bound=Struct)  # noqa: E741 - O as in options
F = TypeVar("F", bound=Callable[..., Any])


def resolve_function(function: F | str) -> F:
    """Return `function`, or the one that `module:function` names."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    return cast(F, getattr(import_module(module), name))


class Command(Struct, Generic[O], frozen=True, kw_only=True):
    """`run` gets the parsed options and returns the exit code (None: what `result` does is all, and it prints itself).

    Functions are given as such, or as `module:function` where the module is more than help and completion need: it is
    loaded when the function is called.

    `prepare` makes the pipeline for a cluster, without submitting it (None: nothing is left to do).
    `config` names the struct of the `++` keys (None: it takes none, or with `any_keys` some that are checked
    later); `result` does the work for the Python API and returns what the call is worth, where that is more than
    success. `essentials` are the options and `++` keys that `--help` shows where all of them are too many (empty:
    all). `more_help` gives what the help says beyond the options, for the positional words that stand with `--help`;
    a command that has it takes options that only it can judge (`Parsed.more`).
    """

    name: str
    summary: str
    options: type[O]
    run: Callable[[Parsed[O]], int] | str | None = None
    result: Callable[[Parsed[O]], Any] | str | None = None
    prepare: Callable[[Parsed[O], ClusterConfig], PreparedSubmission | None] | str | None = None
    config: type[Struct] | None = None
    aliases: Mapping[str, str] = {}
    examples: Sequence[str] = ()
    essentials: Sequence[str] = ()
    any_keys: bool = False
    more_help: Callable[[Mapping[str, list[str]]], str] | str | None = None

    def main(self, argv: Sequence[str]) -> int:
        """Parse `argv`, show help where asked, and run. Raises NewskillsError."""
        parsed = self.parse_words(argv)
        if parsed.help:
            text = self.help(full=parsed.help == "all")
            if self.more_help:
                text += resolve_function(self.more_help)(parsed.more)
            sys.stdout.write(text)
            return 0
        self.check(parsed)
        work = resolve_function(self._work)
        keep_imports()
        done = work(parsed)
        if self.run is None:
            return 0
        return int(done)

    @property
    def _work(self) -> Callable[[Parsed[O]], Any] | str:
        work = self.run or self.result
        if work is None:
            raise TypeError(f"{self.name} has neither run nor result.")
        return work

    def parse_words(self, argv: Sequence[str]) -> Parsed[O]:
        """Parse `argv`. Raises ConfigError, UnknownNameError."""
        keys = tuple(leaves(self.config)) if self.config else ()
        open_ended = self.more_help is not None
        return parse(self.options, argv, command=self.name, aliases=self.aliases, keys=keys, open_ended=open_ended)

    def call(self, parsed: Parsed[O]) -> Any:
        """Run the command from Python. Raises NewskillsError, also where the command would end non-zero."""
        self.check(parsed)
        if self.result is not None:
            return resolve_function(self.result)(parsed)
        code = resolve_function(self._work)(parsed)
        if code:
            raise NewskillsError(f"{self.name} ended with exit code {code}.")
        return None

    def check(self, parsed: Parsed[O]) -> None:
        """Raise ConfigError for `++` keys where the command takes none."""
        if parsed.overrides and self.config is None and not self.any_keys:
            key = next(iter(parsed.overrides))
            raise ConfigError(f"ns {self.name} takes no ++ keys, but ++{key}= was given.")

    def help(self, *, full: bool = False) -> str:
        from newskills.commands.table import typed_words

        return command_help(
            typed_words(self.name),
            self.summary,
            self.options,
            config=self.config,
            examples=self.examples,
            only=() if full else self.essentials,
        )
