# SPDX-License-Identifier: Apache-2.0
"""MCP against real servers in processes of their own, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from newskills.base import aio
from newskills.base.errors import ConfigError, FatalToolError, NewskillsError, ToolError
from newskills.base.records import Row
from newskills.tools import mcp_link
from newskills.tools.provider import ToolContext
from newskills.tools.toolbox import ProviderToolbox, ToolSettings, make_toolbox

pytest.importorskip("mcp", reason="no mcp here: pip install 'newskills[tools]'")

SERVER = Path(__file__).with_name("mcp_server.py")
STDIO: Row = {"command": sys.executable, "args": (str(SERVER),)}
Work = Callable[[ProviderToolbox], Awaitable[Any]]


def use(config: Row, work: Work, environ: dict[str, str] | None = None) -> Any:
    async def main() -> Any:
        settings = ToolSettings(modules=("mcp",), overrides={"mcp": config})
        box = make_toolbox(settings, ToolContext(environ=environ or {}))
        try:
            return await work(box)
        finally:
            await box.close()

    return aio.run(main)


def calls(*names: tuple[str, Row]) -> Work:
    async def work(box: ProviderToolbox) -> list[Any]:
        found: list[Any] = []
        for name, arguments in names:
            try:
                found.append(await box.execute(name, arguments, "r"))
            except NewskillsError as error:
                found.append(error)
        return found

    return work


async def names(box: ProviderToolbox) -> list[str]:
    await box.open()
    return [spec.name for spec in box.specs()]


@contextlib.contextmanager
def http_server(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    place = folder / "port"
    place.unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, str(SERVER), "--http", str(place), *options])
    try:
        until = time.monotonic() + 300
        while not place.exists() or not place.read_text():
            assert time.monotonic() < until
            time.sleep(0.02)
        yield f"http://127.0.0.1:{place.read_text()}/mcp", process
    finally:
        process.kill()
        process.wait()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_tools_over_stdio() -> None:
    async def work(box: ProviderToolbox) -> Any:
        await box.open()
        (add,) = [spec for spec in box.specs() if spec.name == "add"]
        return add, await calls(
            ("add", {"a": 2, "b": 3}),
            ("odd_name_v1__beta_", {"text": "q"}),
            ("fail", {"why": "bad luck"}),
            ("add", {"a": "2", "b": 3}),
        )(box)

    add, (total, odd, failed, refused) = use(STDIO, work)
    assert add.description == "Adds two whole numbers."
    assert add.input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer"},
            "session": {"type": "string", "default": ""},
        },
        "required": ["a", "b"],
    }
    assert (total, odd) == ("5", "<q>")
    assert type(failed) is ToolError
    assert "fail" in failed.message
    assert "'a' must be of type integer" in str(refused)


def test_hidden_and_fixed_arguments_and_chosen_tools() -> None:
    config = {
        **STDIO,
        "enabled_tools": ["add", "sessions", "slow"],
        "disabled_tools": ["slow"],
        "hide_args": {"sessions": ["nothing"]},
        "arguments": {"add": {"session": "fixed", "b": 40}},
    }

    async def work(box: ProviderToolbox) -> Any:
        shown = await names(box)
        (add,) = [spec for spec in box.specs() if spec.name == "add"]
        return shown, add.input_schema, await calls(("add", {"a": 2}), ("sessions", {}))(box)

    shown, schema, (total, sessions) = use(config, work)
    assert shown == ["add", "sessions"]
    assert schema == {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert (total, sessions) == ("42", "fixed")


def test_a_stdio_server_sees_only_the_variables_that_are_named() -> None:
    work = calls(*(("variable", {"name": name}) for name in ("TEST_KEY", "OTHER_KEY", "PATH")))
    environ = {"TEST_KEY": "s3cret", "OTHER_KEY": "hidden"}
    key, other, path = use({**STDIO, "environment": ["TEST_KEY"]}, work, environ)
    assert (key, other) == ("s3cret", "")
    assert path
    with pytest.raises(ConfigError, match="export TEST_KEY="):
        use({**STDIO, "environment": ["TEST_KEY"]}, names)


def test_a_call_that_takes_too_long_is_told_and_the_server_goes_on() -> None:
    work = calls(("slow", {"seconds": 30}), ("add", {"a": 1, "b": 1}))
    late, total = use({**STDIO, "timeout": 0.5}, work)
    assert type(late) is ToolError
    assert "within 0.5 seconds" in late.message
    assert total == "2"


def test_a_server_that_dies_is_started_again(tmp_path: Path) -> None:
    marker = str(tmp_path / "died")
    work = calls(("pid", {}), ("die", {"marker": marker}), ("pid", {}), ("die", {}), ("pid", {}))
    first, revived, second, dead, third = use(STDIO, work)
    assert revived == "still here"
    assert type(dead) is ToolError
    assert "ended during the call" in dead.message
    assert len({first, second, third}) == 3


def test_a_server_that_dies_again_and_again_is_given_up() -> None:
    one, two = use(STDIO, calls(("die", {}), ("die", {})))
    assert type(one) is ToolError
    assert isinstance(two, FatalToolError)
    assert "3 times in a row" in two.message


def test_a_server_that_cannot_start_is_fatal_and_its_last_words_hold_no_secret() -> None:
    config = {**STDIO, "args": [str(SERVER), "--broken"], "environment": ["TEST_SECRET"]}
    with pytest.raises(FatalToolError) as caught:
        use(config, names, {"TEST_SECRET": "s3cret"})
    assert "no licence for ***" in str(caught.value)
    with pytest.raises(FatalToolError, match="No such file"):
        use({"command": "/no/such/program"}, names)
    with pytest.raises(FatalToolError, match=r"no answer within 0\.3 seconds"):
        use({"command": "sleep", "args": ["60"], "start_timeout": 0.3}, names)


@pytest.mark.parametrize("stubborn", [False, True])
def test_nothing_is_left_behind(tmp_path: Path, stubborn: bool) -> None:
    """A server that goes when it is told to, and one that does not, with a child of its own."""
    file = tmp_path / "pid"
    more = ["--stubborn"] if stubborn else []
    use({**STDIO, "args": [str(SERVER), "--pid", str(file), *more]}, names)
    server, child = map(int, file.read_text().split())
    until = time.monotonic() + 300
    while (alive(server) or (child and alive(child))) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(server)
    assert not (child and alive(child))


def test_hooks_change_the_connection_and_the_results(tmp_path: Path) -> None:
    hooks = tmp_path / "hooks.py"
    hooks.write_text(
        "import msgspec\n"
        "def start(config, environ):\n"
        f"    return msgspec.structs.replace(config, command=environ['EXE'], args=({str(SERVER)!r},))\n"
        "def keyed(config, environ):\n"
        "    return msgspec.structs.replace(config, url=config.url + '?key=' + environ['EXE'])\n"
        "def shown(result):\n"
        "    return {'said': result.content[0].text}\n"
        "def wrong(config, environ):\n"
        "    return 1 // 0\n"
        "def nothing(config, environ):\n"
        "    return None\n"
    )
    config = {"init_hook": f"{hooks}::start", "output_formatter": f"{hooks}::shown"}
    (text,) = use(config, calls(("add", {"a": 1, "b": 2})), {"EXE": sys.executable})
    assert text == '{"said":"3"}'
    with pytest.raises(FatalToolError, match=r"http://127\.0\.0\.1:1/mcp cannot be used") as caught:
        use({"init_hook": f"{hooks}::keyed", "url": "http://127.0.0.1:1/mcp"}, names, {"EXE": "s3cret"})
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ConfigError, match="ZeroDivisionError"):
        use({"init_hook": f"{hooks}::wrong"}, names)
    with pytest.raises(ConfigError, match="must return the configuration"):
        use({"init_hook": f"{hooks}::nothing"}, names)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "command or a url"),
        ({"command": "x", "url": "http://y"}, "not both"),
        ({"url": "http://y", "headers": {"Authorization": "Bearer abc"}}, "must not be written"),
        ({"url": "http://y", "headers": {"X-A": "${NOT_SET}"}}, "export NOT_SET="),
        ({**STDIO, "enabled_tools": ["ad"]}, "did you mean 'add'"),
        ({**STDIO, "arguments": {"ad": {}}}, "did you mean 'add'"),
        ({"comand": "x"}, "did you mean 'command'"),
    ],
)
def test_mistakes_are_told(config: Row, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        use(config, names)
    assert words in str(caught.value)


@pytest.mark.parametrize("options", [(), ("--stateless",)])
def test_tools_over_http(tmp_path: Path, options: tuple[str, ...]) -> None:
    with http_server(tmp_path, *options) as (url, _):
        config = {"url": url, "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 60}
        work = calls(("add", {"a": 2, "b": 3}), ("fail", {"why": "x"}), ("slow", {"seconds": 0.1}))
        total, failed, slow = use(config, work, {"TOKEN": "t"})
    assert (total, slow) == ("5", "at last")
    assert type(failed) is ToolError


def test_an_http_server_that_is_gone_is_fatal(tmp_path: Path) -> None:
    with http_server(tmp_path) as (url, _):
        pass
    with pytest.raises(FatalToolError, match="cannot be used"):
        use({"url": url}, names)

    with http_server(tmp_path) as (url, process):

        async def lost(box: ProviderToolbox) -> Any:
            before = await calls(("add", {"a": 1, "b": 1}))(box)
            process.kill()
            process.wait()
            return before, await calls(("add", {"a": 1, "b": 1}))(box)

        before, (after,) = use({"url": url}, lost)
    assert before == ["2"]
    assert isinstance(after, FatalToolError)


def test_a_server_that_hangs_does_not_hold_up_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_link, "CLOSE_TIMEOUT", 0.5)
    with http_server(tmp_path) as (url, process):

        async def work(box: ProviderToolbox) -> list[Any]:
            found: list[Any] = await calls(("add", {"a": 1, "b": 1}))(box)
            process.send_signal(signal.SIGSTOP)
            return found

        began = time.monotonic()
        assert use({"url": url}, work) == ["2"]
        assert time.monotonic() - began < 60
        process.send_signal(signal.SIGCONT)


def test_many_calls_at_once_share_one_server() -> None:
    async def work(box: ProviderToolbox) -> Any:
        totals = await asyncio.gather(*(box.execute("add", {"a": n, "b": 1}, f"{n}") for n in range(100)))
        return [int(total) for total in totals], {await box.execute("pid", {}, "x") for _ in range(3)}

    totals, pids = use(STDIO, work)
    assert totals == [n + 1 for n in range(100)]
    assert len(pids) == 1


def test_without_the_package() -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "from newskills.base.errors import ConfigError\n"
        "from newskills.tools.mcp_link import import_mcp\n"
        "try:\n    import_mcp()\nexcept ConfigError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install 'newskills[tools]'" in said
