# SPDX-License-Identifier: Apache-2.0
"""`--launch_chat_interface`: the page beside a server, and what `--extra_chat_args` says of it."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from newskills.base.errors import ConfigError
from newskills.config.command_line import parse
from newskills.config.settings import read_config
from newskills.config.values import parse_value
from newskills.run.hosting.servers import RunningServer
from newskills.view.chat import ChatOptions, ServedModel, chat_page

OPTION = "--extra_chat_args"


def chat_options(text: str) -> ChatOptions:
    """Parse `++port=7861 ++inference.temperature=0.7`, or the same with `--`. Raises ConfigError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{OPTION} cannot be split into words: {error}.") from error
    parsed = parse(ChatOptions, words, command=f"start_server {OPTION}")
    given_options: dict[str, Any] = {name: getattr(parsed.options, name) for name in parsed.given}
    overrides = {
        key.removeprefix("inference."): parse_value(str(value)) for key, value in parsed.overrides.items()
    }
    return read_config(ChatOptions, {**given_options, **overrides}, OPTION)


@contextlib.contextmanager
def chat_with(
    address: str, name: str, key_variable: str, options: ChatOptions, say: Callable[[str], None]
) -> Iterator[None]:
    """Serve the page for the server at `address` (http://host:port), inside the `with`. Raises ServerStartError."""
    key = os.environ.get(key_variable, "") if key_variable else ""
    with chat_page(ServedModel(address=address, name=name, key=key), options) as url:
        say(f"Chat with {name} in the browser: {url}")
        yield


def chat_beside(
    key_variable: str, options: ChatOptions, say: Callable[[str], None]
) -> Callable[[RunningServer], contextlib.AbstractContextManager[None]]:
    """Return a function that serves the page for a server of this machine, inside its `with`."""

    def beside(server: RunningServer) -> contextlib.AbstractContextManager[None]:
        return chat_with(server.base_url.removesuffix("/v1"), server.model_name, key_variable, options, say)

    return beside
