# SPDX-License-Identifier: Apache-2.0
"""The dispatcher. Nothing but the table of commands is imported before the command is known."""

from __future__ import annotations

import os
import sys

from newskills.base.garbage import collect_less_often
from newskills.commands.loading import load_command, show_plain_list
from newskills.commands.table import help_page, one_name


def main(argv: list[str] | None = None) -> int:
    """Run one command, and return its exit code. Ends quietly when the reader of a pipe goes away."""
    collect_less_often()
    _open_closed_streams()
    try:
        code = _run_words(list(sys.argv[1:] if argv is None else argv))
        print(end="", flush=True)  # what is left fails here, if at all, not when Python ends
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _forget_output()
        return 141
    except (OSError, MemoryError, RuntimeError, SystemError, ImportError) as error:
        from newskills.base.errors import describe_shortage

        if not (sentence := describe_shortage(error)):
            raise
        _forget_output()
        sys.stderr.write(f"error: {sentence}\n")
        return 1


def _open_closed_streams() -> None:
    """Give the null device to standard streams that the caller has closed: the next file would take their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the process's life
            setattr(sys, name, stream)


def _check_words(words: list[str]) -> None:
    """Raise ConfigError for words that are no text: paths are recorded as UTF-8."""
    from newskills.base.errors import ConfigError

    for word in (*words, os.getcwd()):
        try:
            word.encode()
        except UnicodeEncodeError as error:
            shown = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            raise ConfigError(
                f"'{shown}' is not UTF-8, in which paths and settings are recorded.",
                hint="Rename the file or folder, or make a symbolic link to it.",
            ) from error


def _forget_output() -> None:
    """Send further output nowhere: Python flushes once more when it ends, and what then fails has been reported."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_words(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        sys.stdout.write(help_page())
        return 0
    if words[0] in ("--version", "-V"):
        from newskills._version import __version__

        sys.stdout.write(f"newskills {__version__}\n")
        return 0
    from newskills.base.errors import NewskillsError

    try:
        if show_plain_list(words):
            return 0
        _check_words(words)
        name, *rest = one_name(words)
        return load_command(name).main(rest)
    except NewskillsError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
