# SPDX-License-Identifier: Apache-2.0
"""`ns completion SHELL`: prints a script; the script asks `ns completion words` for candidates."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from msgspec import Struct

from newskills.commands.command import Command
from newskills.config.command_line import Parsed
from newskills.config.fields import leaves
from newskills.pipelines.options import doc

SCRIPTS = {
    "bash": """\
_ns_complete() {
  local IFS=$'\\n'
  COMPREPLY=($(ns completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -o nosort -F _ns_complete ns
""",
    "zsh": """\
#compdef ns
_ns() {
  local -a found
  found=("${(@f)$(ns completion words -- "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _ns ns
""",
    "fish": """\
function __ns_words
  set -l words (commandline -opc) (commandline -ct)
  ns completion words -- $words[2..-1] 2>/dev/null
end
complete -c ns -a '(__ns_words)'
""",
}


class Options(Struct, frozen=True, kw_only=True):
    shell: Annotated[
        Literal["bash", "zsh", "fish", "words"],
        doc("bash, zsh or fish; words: print candidates for the last word given", {"positional": True}),
    ]
    words: Annotated[list[str], doc("words after `ns`; the last one is completed", {"positional": True})] = []


def completion_candidates(words: list[str]) -> list[str]:
    """Return the completions of the last of `words`: commands, options, `++` keys or benchmark names."""
    from newskills.commands.loading import load_command
    from newskills.commands.table import FAMILIES, command_names, one_name

    if len(words) <= 1:
        return _names_with_prefix([*command_names(), *FAMILIES], words[-1] if words else "")
    if words[0] in FAMILIES and len(words) == 2:
        return _names_with_prefix(list(FAMILIES[words[0]]), words[1])
    command = load_command(one_name(words)[0])
    last = words[-1]
    option, equals, _ = last.partition("=")
    if (option == "--benchmarks" and equals) or words[-2] == "--benchmarks":
        return _benchmark_candidates(last, option if equals else "")
    if command.name == "prepare_data" and not last.startswith("-"):
        return _benchmark_candidates(last, "")
    if last.startswith("+"):
        if command.config:
            return _names_with_prefix([f"++{path}=" for path in leaves(command.config)], last)
        return []
    if last.startswith("-"):
        flags = [f"--{p}" if leaf.is_bool else f"--{p}=" for p, leaf in leaves(command.options).items()]
        return _names_with_prefix([*flags, "--help", "--help=all", "--explain"], last)
    return []


def _benchmark_candidates(last: str, option: str) -> list[str]:
    """Return the completions of the last name in `last`, which begins with `option=` where an option is given."""
    from newskills.benchmarks import list_all

    typed = last.partition("=")[2] if option else last
    done, comma, part = typed.rpartition(",")
    head = f"{option}=" if option else ""
    return [f"{head}{done}{comma}{entry.name}" for entry in list_all() if entry.name.startswith(part)]


def _names_with_prefix(names: list[str], prefix: str) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def completion_text(parsed: Parsed[Options]) -> str:
    """Return the script of a shell, or the candidates, a line for each."""
    options = parsed.options
    if options.shell == "words":
        return "".join(f"{word}\n" for word in completion_candidates(options.words))
    return SCRIPTS[options.shell]


def run(parsed: Parsed[Options]) -> int:
    sys.stdout.write(completion_text(parsed))
    return 0


COMMAND = Command(
    name="completion",
    summary="Print the completion script of a shell, to source or to save.",
    options=Options,
    run=run,
    result=completion_text,
    examples=("source <(ns completion bash)", "ns completion fish > ~/.config/fish/completions/ns.fish"),
)
