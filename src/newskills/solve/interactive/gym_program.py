# SPDX-License-Identifier: Apache-2.0
"""NeMo Gym as it is installed here, in an environment of its own: what configurations it has, and their servers.

Its program `gym` resolves a configuration (what it inherits, its ports); the resources server is then started alone,
without Ray, agents and models.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import yaml
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, EnvironmentFailedError, HttpError, UnknownNameError
from newskills.base.http.client import HttpClient
from newskills.base.records import Row

VARIABLE = "NEWSKILLS_GYM"
INSTALL = (
    "Install it in an environment of its own (pip install nemo-gym) and put that on PATH, or name its program: "
    f"export {VARIABLE}=/path/to/bin/gym. A server that runs already needs neither: gym:http://host:port"
)
MODEL = "responses_api_models/openai_model/configs/openai_model.yaml"
SETTINGS = ("++policy_base_url=http://127.0.0.1:1", "++policy_api_key=none", "++policy_model_name=none")
"""A model that configurations refer to; the resources server alone asks none."""
KINDS = ("benchmark", "validation", "example", "train")
"""Kinds of data sets, in the order in which they are taken."""
PATIENCE = 600.0
ENDING = 10.0
DIES_WITH_US = """\
import ctypes, os, sys
getattr(ctypes.CDLL(None), "prctl", int)(1, 9)
os.execv(sys.argv[1], sys.argv[1:])
"""
_HERE = "import nemo_gym, pathlib; print(pathlib.Path(nemo_gym.__file__).parent.parent)"


class GymInstallation(Struct, frozen=True, kw_only=True):
    """The program, the Python beside it, and the folder with `resources_servers` and `benchmarks`."""

    program: Path
    python: Path
    root: Path

    @property
    def places(self) -> tuple[Path, Path]:
        """Folders that configurations and data are looked for in: this one, as Gym does, then its own."""
        return Path.cwd(), self.root

    def configurations(self) -> dict[str, str]:
        """Return name → path of its file, relative to one of the places; servers go by the name of their folder."""
        named: dict[str, str] = {}
        for place in reversed(self.places):
            for file in sorted(place.glob("resources_servers/*/configs/*.yaml")):
                server = file.parent.parent.name
                name = server if file.stem == server else f"{server}/{file.stem}"
                named[name] = str(file.relative_to(place))
            for file in sorted(place.glob("benchmarks/*/*.yaml")):
                name = file.parent.name if file.stem == "config" else f"{file.parent.name}/{file.stem}"
                named.setdefault(name, str(file.relative_to(place)))
        return named

    def file(self, path: str) -> Path | None:
        """Return where a relative path is; None where there is no such file."""
        return next((place / path for place in self.places if (place / path).is_file()), None)


class GymConfiguration(Struct, frozen=True, kw_only=True):
    """A resolved configuration: `settings` is what its servers are told, `instance` the resources server in it,
    `kind` the folder of that."""

    settings: Row
    instance: str
    kind: str

    def data_files(self) -> list[str]:
        """Return the files of tasks that it names, those that are for evaluation first."""
        sets = [
            data
            for instance in self.settings.values()
            if isinstance(instance, dict)
            for servers in (instance.get("responses_api_agents"), instance.get("resources_servers"))
            if isinstance(servers, dict)
            for server in servers.values()
            for data in server.get("datasets") or ()
        ]
        sets.sort(key=lambda data: KINDS.index(data["type"]) if data.get("type") in KINDS else len(KINDS))
        return [data["jsonl_fpath"] for data in sets if data.get("jsonl_fpath")]


def gym_installation(environ: Mapping[str, str]) -> GymInstallation:
    """Find NeMo Gym. Raises ConfigError where it is not here."""
    program = environ.get(VARIABLE) or shutil.which("gym", path=environ.get("PATH"))
    if program is None:
        raise ConfigError("NeMo Gym is not installed here: there is no program gym.", hint=INSTALL)
    path = Path(program).expanduser().absolute()
    python = path.with_name("python")
    try:
        done = subprocess.run([python, "-c", _HERE], capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{path} is not NeMo Gym's program: {error}.", hint=INSTALL) from error
    return GymInstallation(program=path, python=python, root=Path(done.stdout.strip()))


def gym_configuration(installation: GymInstallation, name: str) -> GymConfiguration:
    """Resolve the configuration called `name`. Raises UnknownNameError, ConfigError."""
    named = installation.configurations()
    if name not in named:
        raise UnknownNameError(
            "configuration of NeMo Gym",
            name,
            named,
            hint="All of them: gym list resources-servers; gym list benchmarks",
        )
    words = ["env", "resolve", "--config", named[name], "--config", MODEL, *SETTINGS]
    done = subprocess.run(
        [installation.program, *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    try:
        settings = yaml.safe_load(done.stdout) if not done.returncode else None
    except yaml.YAMLError:
        settings = None
    if not isinstance(settings, dict):
        why = (done.stdout + done.stderr).strip()[-1000:]
        raise ConfigError(f"NeMo Gym cannot resolve the configuration {name}: {why}")
    for instance, value in settings.items():
        if isinstance(value, dict) and isinstance(value.get("resources_servers"), dict):
            return GymConfiguration(
                settings=settings, instance=instance, kind=next(iter(value["resources_servers"]))
            )
    raise ConfigError(f"The configuration {name} of NeMo Gym has no resources server.")


def gym_tasks(name: str, environ: Mapping[str, str]) -> Path:
    """Return the file of tasks of the configuration called `name`. Raises ConfigError, UnknownNameError, DataError
    where none is here."""
    installation = gym_installation(environ)
    files = gym_configuration(installation, name).data_files()
    for file in files:
        if (path := installation.file(file)) is not None:
            return path
    raise DataError(
        f"No data of {name} are here: {', '.join(files) or 'it names none'}.",
        hint=f"gym eval prepare --benchmark {name}, or name a file: ns prepare_data gym:{name} --rows=FILE",
    )


@asynccontextmanager
async def gym_server(name: str, environ: Mapping[str, str]) -> AsyncIterator[str]:
    """Start the resources server of a configuration, and yield its address; it ends with the block, and with us.

    Raises ConfigError, UnknownNameError, EnvironmentFailedError for one that does not start.
    """
    installation = await asyncio.to_thread(gym_installation, environ)
    configuration = await asyncio.to_thread(gym_configuration, installation, name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = configuration.settings[configuration.instance]["resources_servers"][configuration.kind]
    own |= {"host": "127.0.0.1", "port": port}
    own_folder = f"resources_servers/{configuration.kind}"
    entry = installation.file(f"{own_folder}/{own.get('entrypoint', 'app.py')}")
    if entry is None:
        raise ConfigError(f"{own_folder} of NeMo Gym has no {own.get('entrypoint', 'app.py')}.")
    python = _server_python(installation, configuration)
    env = {
        **environ,
        "NEMO_GYM_CONFIG_PATH": configuration.instance,
        "NEMO_GYM_CONFIG_DICT": yaml.safe_dump({**configuration.settings, "dry_run": False}),
    }
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *(installation.python, "-c", DIES_WITH_US, python, entry.name),
            cwd=entry.parent,
            env=env,
            stdout=log,
            stderr=log,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            await _await_ready(process, address, name, log)
            yield address
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), ENDING)
            with suppress(ProcessLookupError):
                process.kill()


def _server_python(installation: GymInstallation, configuration: GymConfiguration) -> Path:
    """Return the Python of the server's own environment, which Gym makes for it; without one, Gym's."""
    below = Path("resources_servers", configuration.kind, ".venv/bin/python")
    places = [Path(str(configuration.settings.get("uv_venv_dir") or ".")), *installation.places]
    return next((place / below for place in places if (place / below).is_file()), installation.python)


async def _await_ready(process: Any, address: str, name: str, log: IO[bytes]) -> None:
    """Wait until the server answers. Raises EnvironmentFailedError."""
    client = HttpClient(address, limit=1)
    deadline = asyncio.get_running_loop().time() + PATIENCE
    try:
        while process.returncode is None and asyncio.get_running_loop().time() < deadline:
            with suppress(HttpError):
                await client.get("/", ENDING)
                return
            await asyncio.sleep(0.1)
    finally:
        await client.close()
    log.seek(0)
    tail = log.read().decode(errors="replace").strip()[-1500:]
    raise EnvironmentFailedError(f"The server {name} of NeMo Gym did not start: {tail}")
