# SPDX-License-Identifier: Apache-2.0
"""Rules of hosted services, ours and one of another distribution: a provider is one file and one row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.base.http._loopback import Heard, Play, always, loopback, replies, response, run
from tests.commands.running import ns
from tests.models._openai_wire import CHAT
from tests.models.test_hosted import CLAUDE, GEMINI
from tests.plugins.installed import EXAMPLE, variables

import newskills
from newskills.base.errors import AuthError, ConfigError, HttpError, ModelError, RateLimitError, ServerError
from newskills.base.protocols import Model
from newskills.base.records import Inference, Message, Reply, Request
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.variables import job_variables
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.kinds import MODELS, service_keys
from newskills.models.serving import SERVERS, ServeSpec, serve_argv
from newskills.pipelines.models import choose_model
from newskills.pipelines.options import ModelOptions

SERVICES = [name for name, properties in MODELS.built_in().items() if properties.hosted and properties.keys]
ALL = [*SERVICES, "openrouter"]
ANSWERS = {"anthropic": CLAUDE, "gemini": GEMINI}
"""Of wires of their own."""
SECRET = "sk-not-to-be-shown-0123456789"
QUESTION = Request(messages=[Message(role="user", content="hi")], inference=Inference(tokens_to_generate=9))

pytestmark = pytest.mark.usefixtures("plugged")


async def ask(name: str, play: Play, variable: str) -> tuple[Reply, Heard]:
    async with loopback(play) as place:
        config = ServerConfig(server_type=name, model="m", base_url=place.url)
        model = make_model(config, concurrency=2, environ={variable: SECRET})
        assert isinstance(model, Model)
        try:
            return await model.complete(QUESTION), place.heard[-1]
        finally:
            await model.close()


def test_services_are_those_of_the_table() -> None:
    assert {"openai", "azureopenai", "gemini", "anthropic"} <= set(SERVICES)
    assert "openrouter" in MODELS.names()
    assert "openrouter" not in MODELS.built_in()


@pytest.mark.parametrize("name", ALL)
def test_a_key_is_found_by_each_of_its_variables_and_sent(name: str) -> None:
    for variable in MODELS.properties(name).keys[:1]:
        reply, heard = run(ask(name, replies(ANSWERS.get(name, CHAT)), variable))
        assert reply.text == "hello"
        assert any(SECRET in value for value in heard.headers.values())
        assert SECRET not in heard.path
        assert SECRET not in repr(reply)


@pytest.mark.parametrize("name", ALL)
def test_without_a_key_the_variable_is_named_before_any_request(name: str) -> None:
    """At its usual address; others may ask for no key."""
    address = "https://x.openai.azure.com" if name.startswith("azure") else None
    with pytest.raises(AuthError, match=MODELS.properties(name).keys[0]):
        make_model(ServerConfig(server_type=name, model="m", base_url=address), concurrency=1, environ={})


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("status", "kind"),
    [("401 X", AuthError), ("429 X", RateLimitError), ("503 X", ServerError), ("418 X", ModelError)],
)
def test_refusals_are_errors_of_the_family_without_the_key(name: str, status: str, kind: type[HttpError]) -> None:
    body = f'{{"error": {{"message": "no, {SECRET}", "type": "x"}}}}'.encode()
    with pytest.raises(kind) as caught:
        run(ask(name, always(response(body, status)), MODELS.properties(name).keys[0]))
    assert SECRET not in f"{caught.value} {getattr(caught.value, 'hint', '')}"


@pytest.mark.parametrize("name", ALL)
def test_it_is_never_started_here_nor_asked_for_gpus(name: str) -> None:
    assert name not in SERVERS
    with pytest.raises(ConfigError, match=f"type '{name}' is a hosted service"):
        serve_argv(ServeSpec(model="m", server_type=name, port=5000))
    options = ModelOptions(model=["m"], server_type=[name])
    for elsewhere in (False, True):
        choice = choose_model(options, {}, elsewhere=elsewhere)
        assert choice.host is None
        assert choice.layer.values["server.server_type"] == name
    with pytest.raises(ConfigError, match="it cannot be started here"):
        choose_model(replace(options, server_gpus=[1]), {})


@pytest.mark.parametrize("name", ALL)
def test_its_keys_go_to_jobs_by_name(name: str) -> None:
    for key in MODELS.properties(name).keys:
        assert key in service_keys()
        made = job_variables(ClusterConfig(), {key: SECRET})
        assert made.secrets == {key: SECRET}
        assert SECRET not in repr(made)


@pytest.mark.parametrize("name", ALL)
def test_doctor_sees_its_keys(name: str, tmp_path: Path, example: Path) -> None:
    keys = MODELS.properties(name).keys
    done = ns("ns doctor", cwd=tmp_path, env={**variables(example), **dict.fromkeys(keys, SECRET)})
    line = next(line for line in done.stdout.splitlines() if "API keys" in line)
    assert set(keys) <= set(re.findall(r"[A-Z0-9_]+", line))
    assert SECRET not in done.stdout + done.stderr


def test_the_page_on_models_has_every_kind_with_its_keys() -> None:
    """Kinds of judges have a page of their own."""
    text = (EXAMPLE.parents[1] / "models.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    kinds: dict[str, str] = {}
    for cells in rows:  # of the first table that names a kind; later ones are about other things
        for name in re.findall(r"`(\w+)`", cells[0]) if len(cells) == 3 else ():
            kinds.setdefault(name, cells[2])
    judges = {"comet", "nvembed", "step"}
    assert set(MODELS.built_in()) - judges <= kinds.keys()
    for name, properties in MODELS.built_in().items():
        assert set(properties.hosts.values()) <= set(properties.keys)
        if name not in judges:
            expected = {*properties.keys, properties.server_key} - {""}
            assert set(re.findall(r"`([A-Z_]+_KEY)`", kinds[name])) == expected, name


def test_names_of_keys_stand_once_in_the_source() -> None:
    root = Path(newskills.__file__).parent
    keys = {key for row in MODELS.built_in().values() for key in row.keys}
    places = {
        key: [
            path.relative_to(root).as_posix()
            for path in root.rglob("*.py")
            if f'"{key}"' in path.read_text("utf-8")
        ]
        for key in keys
    }
    assert {key: files for key, files in places.items() if files != ["models/kinds.py"]} == {}


def test_the_example_is_one_file_and_one_line() -> None:
    text = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    assert text.count("openrouter:") == 1
    assert len((EXAMPLE / "newskills_example/openrouter.py").read_text(encoding="utf-8").splitlines()) <= 40
