# SPDX-License-Identifier: Apache-2.0
"""argv → options of a command (a struct) and `++` overrides.

`--snake_case` is canonical, `--kebab-case` means the same; `--k v` and `--k=v`; `--flag` / `--no-flag`; lists take
several words or repetitions; `++a.b=v`, `+a.b=v` and `a.b=v` are one thing. Unknown options are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, UnknownNameError, suggest
from newskills.config.fields import Leaf, leaves, union_members
from newskills.config.values import Text, convert_value, is_sequence

S = TypeVar("S", bound=Struct)
_OVERRIDE = re.compile(r"\+{0,2}[A-Za-z_][\w.\-/@]*=", re.ASCII)
FULL_HELP = ("--help=all", "--help-all", "--help_all")
_LIST_HINTS = ("comma separated", ",…")
"""Marks of a description: the values of the option are separated by commas."""
_HYDRA_FLAGS = ("config_path", "config_name", "config_dir", "cfg", "info", "multirun", "hydra_help")


class Parsed(Struct, Generic[S]):
    """`given` names the options that the user set; `overrides` keeps the last value of each key, as text.

    `help`: the page that is asked for; empty: none. `objects`: what Python passed in place of names, by these names.
    """

    options: S
    overrides: dict[str, Text]
    given: frozenset[str]
    help: Literal["", "short", "all"] = ""
    explain: bool = False
    more: dict[str, list[str]] = {}
    objects: dict[str, Any] = {}


def parse(
    cls: type[S],
    argv: Sequence[str],
    *,
    command: str,
    aliases: Mapping[str, str] | None = None,
    keys: Iterable[str] = (),
    open_ended: bool = False,
) -> Parsed[S]:
    """Read `argv`. `aliases`: other names of options; `keys`: `++` keys, for better suggestions.

    `open_ended`: options that are not known are kept in `more`, with the words behind them, instead of refused.

    Raises ConfigError (a value is missing or of the wrong type), UnknownNameError (option).
    """
    reader = _OptionReader(leaves(cls), dict(aliases or {}), command, tuple(keys))
    reader.open_ended = open_ended
    reader.read_words(list(argv))
    if reader.help:
        words = {name: list(map(str, reader.values.get(name, []))) for name in reader.positionals if open_ended}
        return Parsed(_with_empty_required(cls), reader.overrides, frozenset(), help=reader.help, more=words)
    options = build(cls, reader.values, command=command)
    return Parsed(options, reader.overrides, frozenset(reader.values), explain=reader.explain, more=reader.more)


def build(cls: type[S], values: Mapping[str, Any], *, command: str) -> S:
    """Build options from values by name (texts or Python values). Raises ConfigError; names what is missing."""
    leaves_by_name = leaves(cls)
    done = {}
    for name, value in values.items():
        leaf = leaves_by_name[name]
        if is_sequence(value):
            texts = value = list(value)
        else:
            texts = [value]
        if leaf.is_list and all(isinstance(text, Text) for text in texts):
            done[name] = _list_value([str(text) for text in texts], leaf)
        elif leaf.is_list:
            done[name] = convert_value(texts, leaf, f"--{name} {_display_text(value)}")
        else:
            done[name] = convert_value(_as_text(value, leaf), leaf, f"--{name} {_display_text(value)}")
    missing = [name for name, leaf in leaves_by_name.items() if leaf.required and name not in done]
    if missing:
        first = leaves_by_name[missing[0]]
        if first.extra.get("positional"):
            word = missing[0].upper()
        else:
            word = f"--{missing[0]}"
        raise ConfigError(
            f"ns {command}: {word} is missing ({first.description}).", hint=f"See: ns {command} --help"
        )
    return msgspec.convert(done, cls)


class _OptionReader:
    def __init__(
        self,
        leaves_by_name: dict[str, Leaf],
        aliases: dict[str, str],
        command: str,
        keys: tuple[str, ...],
    ) -> None:
        self.known, self.aliases, self.command, self.keys = leaves_by_name, aliases, command, keys
        self.values: dict[str, Any] = {}
        self.overrides: dict[str, Text] = {}
        self.more: dict[str, list[str]] = {}
        self.help: Literal["", "short", "all"] = ""
        self.explain = self.open_ended = False
        self.listing: tuple[str, str] | None = None
        """The option with values separated by commas that was read last, and its text."""
        self.positionals = [name for name, leaf in leaves_by_name.items() if leaf.extra.get("positional")]

    def read_words(self, words: list[str]) -> None:
        while words:
            word = words.pop(0)
            if word in ("--help", "-h"):
                self.help = self.help or "short"
            elif word in FULL_HELP:
                self.help = "all"
            elif word == "--explain":
                self.explain = True
            elif word == "--":
                for rest in words:
                    self.place_positional(rest)
                words.clear()
            elif word.startswith("--"):
                self.read_option(word, words)
            elif _OVERRIDE.match(word):
                key, _, value = word.lstrip("+").partition("=")
                self.overrides[key] = Text(value)
            elif word.startswith("+"):
                raise ConfigError(f"{word} has no value; write {word}=VALUE.")
            elif word.startswith("-") and len(word) > 1 and not word[1].isdigit():
                self.read_short_option(word, words)
            else:
                self.place_positional(word)

    def read_short_option(self, word: str, words: list[str]) -> None:
        for name, leaf in self.known.items():
            if leaf.extra.get("short") == word:
                self.read_option(f"--{name}", words)
                return
        raise UnknownNameError("option", word, [f"--{name}" for name in self.known], hint=self.help_hint())

    def place_positional(self, word: str) -> None:
        for name in self.positionals:
            if self.known[name].is_list:
                self.values.setdefault(name, []).append(Text(word))
                return
            if name not in self.values:
                self.values[name] = Text(word)
                return
        hint = self.help_hint()
        if self.listing:
            name, value = self.listing
            hint = f"Several values of --{name} are separated by commas: --{name}={value},{word}"
        raise ConfigError(f"ns {self.command}: unexpected word '{word}'.", hint=hint)

    def read_option(self, word: str, words: list[str]) -> None:
        flag, equals, value = word[2:].partition("=")
        if self.open_ended and not self.is_known(flag):
            if equals:
                self.keep_unknown(flag, [value])
            else:
                self.keep_unknown(flag, self.words_behind(words))
            return
        name, negated = self.name_of(flag)
        leaf = self.known[name]
        if negated:
            self.values[name] = False
        elif leaf.is_bool and not equals:
            self.values[name] = True
        elif equals:
            self.add_texts(name, [value])
        else:
            self.add_texts(name, self.words_for(word, leaf, words))
        self.listing = None
        if not leaf.is_list and any(mark in leaf.description for mark in _LIST_HINTS):
            self.listing = (name, str(self.values[name]))

    def keep_unknown(self, flag: str, texts: list[str]) -> None:
        self.more.setdefault(flag.replace("-", "_"), []).extend(texts)

    def words_behind(self, words: list[str]) -> list[str]:
        taken = []
        while words and not words[0].startswith("-") and not _OVERRIDE.match(words[0]):
            taken.append(words.pop(0))
        return taken

    def is_known(self, flag: str) -> bool:
        try:
            self.name_of(flag)
        except (UnknownNameError, ConfigError):
            return False
        return True

    def add_texts(self, name: str, texts: list[str]) -> None:
        if self.known[name].is_list:
            self.values.setdefault(name, []).extend(Text(text) for text in texts)
        else:
            self.values[name] = Text(texts[0])

    def words_for(self, word: str, leaf: Leaf, words: list[str]) -> list[str]:
        """Take the words of an option's value from `words`. A value may itself begin with `--` (engine arguments); only
        a known option ends the search for it.

        An option whose `extra` has `bare` may stand without a value, and then has that one.
        """
        if not words or self.is_option(words[0]):
            if "bare" in leaf.extra:
                return [str(leaf.extra["bare"])]
            raise ConfigError(f"{word} needs a value ({leaf.description}).", hint=self.help_hint())
        taken = [words.pop(0)]
        while leaf.is_list and words and not words[0].startswith("-") and not _OVERRIDE.match(words[0]):
            taken.append(words.pop(0))
        return taken

    def is_option(self, word: str) -> bool:
        if word.startswith("++") and _OVERRIDE.match(word):
            return True
        if not word.startswith("--") or any(ch.isspace() for ch in word):
            return False
        return self.open_ended or self.is_known(word[2:].partition("=")[0])

    def name_of(self, flag: str) -> tuple[str, bool]:
        name = flag.replace("-", "_")
        name = self.aliases.get(name, name)
        if name in self.known:
            return name, False
        if name.startswith("no_") and name[3:] in self.known and self.known[name[3:]].is_bool:
            return name[3:], True
        if name in _HYDRA_FLAGS:
            raise UnknownNameError(
                "option",
                f"--{flag}",
                [],
                hint="It belongs to Hydra; newskills has no such files. Use ++key=value.",
            )
        if name in {key.rpartition(".")[2] for key in self.keys} or name in self.keys:
            key = next(key for key in self.keys if key == name or key.endswith(f".{name}"))
            raise UnknownNameError("option", f"--{flag}", [], hint=f"Did you mean ++{key}=VALUE?")
        raise UnknownNameError(
            "option", f"--{flag}", [f"--{option_name}" for option_name in self.known], hint=self.help_hint()
        )

    def help_hint(self) -> str:
        return f"See: ns {self.command} --help"


def check_keywords(cls: type[Struct], names: Iterable[str], command: str) -> None:
    """Check keywords of the Python API; raises TypeError for an unknown or a missing one."""
    leaves_by_name = leaves(cls)
    names_given = set(names)
    for name in names_given - set(leaves_by_name):
        raise TypeError(f"{command}() has no argument '{name}'{suggest(name, leaves_by_name)}")
    for name, leaf in leaves_by_name.items():
        if leaf.required and name not in names_given:
            raise TypeError(f"Missing required argument: '{name}'")


def _as_text(value: Any, leaf: Leaf) -> Any:
    """Return a list or dictionary given from Python as a text (`a,b` or JSON) where the command line has one; anything
    else is returned unchanged."""
    kinds = union_members(leaf.type)
    if str not in kinds or len([kind for kind in kinds if kind is not type(None)]) > 1:
        return value
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return value


def _list_value(texts: list[str], leaf: Leaf) -> Any:
    if len(texts) == 1 and texts[0][:1] == "[":
        return convert_value(Text(texts[0]), leaf, f"--{leaf.path}")
    return convert_value(texts, leaf, f"--{leaf.path} {' '.join(texts)}")


def _with_empty_required(cls: type[S]) -> S:
    required = {name: None for name, leaf in leaves(cls).items() if leaf.required}
    return cls(**required)


def _display_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return repr(value)
