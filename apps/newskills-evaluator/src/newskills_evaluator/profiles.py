# SPDX-License-Identifier: Apache-2.0
"""env.toml: profiles of places where evaluations run, and the section `[wandb]`.

[wandb]
project = "my-project"

[cluster]
executor = "slurm"
host = "login.example.org"
remote_job_dir = "/lustre/me"

[cluster-short]
extends = "cluster"
time = "00:30:00"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, UnknownNameError, suggest
from newskills.base.records import Row
from newskills.base.type_errors import type_fault
from newskills_evaluator.config import Profile, WandbSection

NAME = "env.toml"
VARIABLES = ("NEWSKILLS_ENV_FILE", "NEMOTRON_ENV_FILE")
PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
RESERVED = ("wandb", "cli", "cache", "artifacts")
ALIASES = {"container": "container_image"}
UNSUPPORTED = {
    "dgxcloud": "jobs of DGX Cloud are submitted by its own tools",
    "lepton": "jobs of Lepton are submitted by its own tools, and by nemo-evaluator-launcher",
}
FURTHER = ("pre_command",)
"""Keys that are read from `Profile.settings`."""
_FREE = ("packager", "extends", "name", "settings")
"""Keys that are accepted and mean nothing to newskills, which packages code by itself, or that are set here."""


class EnvFile(Struct, frozen=True, kw_only=True):
    """What one env.toml says, `extends` not yet followed. `path` None: there is no file."""

    path: Path | None = None
    profiles: dict[str, Row] = {}
    wandb: WandbSection = WandbSection()
    cli: Row = {}
    manifests: Path | None = None


def find_env_file(cwd: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the file that a variable names, else the nearest env.toml up to the first folder with a project file.

    Raises DataError where the variable names no file.
    """
    for variable in VARIABLES:
        if named := environ.get(variable):
            path = Path(named).expanduser()
            if not path.is_file():
                raise DataError(f"{variable} names {path}, but there is no such file.")
            return path
    for folder in (cwd, *cwd.parents):
        if (folder / NAME).is_file():
            return folder / NAME
        if any((folder / file).exists() for file in PROJECT_FILES):
            return None
    return None


def read_env_file(path: Path | None) -> EnvFile:
    """Read env.toml. Raises DataError for a file that cannot be read or is not TOML, ConfigError for one with other
    contents."""
    if path is None:
        return EnvFile()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}.") from error
    for name, section in content.items():
        if not isinstance(section, dict):
            raise ConfigError(f"{path}: '{name}' is outside any section; write it below [PROFILE].")
    profiles = {name: section for name, section in content.items() if name not in RESERVED}
    wandb = content.get("wandb", {})
    return EnvFile(
        path=path,
        profiles=profiles,
        wandb=WandbSection(
            project=_read_text_setting(wandb, "project", path), entity=_read_text_setting(wandb, "entity", path)
        ),
        cli=content.get("cli", {}),
        manifests=_manifests_folder(content.get("artifacts", {}), path),
    )


def merged_profile(file: EnvFile, name: str) -> Row:
    """Return the settings of the profile `name` laid over those of its parents, with aliases replaced.

    `env_vars` are merged by name; all else the child replaces. Raises UnknownNameError, ConfigError for a circle.
    """
    chain: list[str] = []
    wanted: str | None = name
    while wanted is not None:
        if wanted in chain:
            raise ConfigError(
                f"{file.path}: profiles extend each other in a circle: {' → '.join([*chain, wanted])}."
            )
        if wanted not in file.profiles:
            raise _unknown_profile_error(file, wanted, chain)
        chain.append(wanted)
        parent = file.profiles[wanted].get("extends")
        if parent is not None and not isinstance(parent, str):
            raise ConfigError(f"{file.path}: extends in [{wanted}]: expected the name of one profile, as text.")
        wanted = parent
    settings: Row = {}
    for profile_name in reversed(chain):
        own = {
            ALIASES.get(key, key): value for key, value in file.profiles[profile_name].items() if key != "extends"
        }
        variables = {**settings.get("env_vars", {}), **own.get("env_vars", {})}
        settings |= own
        if variables:
            settings["env_vars"] = variables
    return settings


def profile_of(name: str, settings: Row) -> Profile:
    """Return the profile with `settings`. Raises ConfigError that names every key whose value does not fit, or for an
    executor that is not supported."""
    executor = settings.get("executor", "local")
    if executor in UNSUPPORTED:
        raise ConfigError(
            f"Profile [{name}]: executor '{executor}' is not supported: {UNSUPPORTED[executor]}.",
            hint="newskills runs on: local, docker, slurm.",
        )
    fields = {field.name: field for field in msgspec.structs.fields(Profile) if field.name not in _FREE}
    values: Row = {}
    wrong: list[str] = []
    for key, value in settings.items():
        if key not in fields or value is None:
            continue
        try:
            values[key] = msgspec.convert(_as_texts(key, value), fields[key].type, strict=False)
        except msgspec.ValidationError as error:
            wrong.append(f"{key}: {type_fault(error, value)}")
    if wrong:
        raise ConfigError(f"Profile [{name}] has wrong values: {'; '.join(wrong)}.")
    return Profile(name=name, settings=settings, **values)


def find_misspelt_keys(settings: Row, used: Callable[[str], bool]) -> dict[str, str]:
    """Map keys that look like another one, and that nothing uses, to what to say of them."""
    plain_fields = [field.name for field in msgspec.structs.fields(Profile) if field.name not in _FREE]
    names = [*plain_fields, *_FREE, *ALIASES, *FURTHER]
    misspellings = {key: suggest(key, names) for key in settings if key not in names and not used(key)}
    return {
        key: f"a profile has no such key{close}" for key, close in misspellings.items() if "did you mean" in close
    }


def _as_texts(key: str, value: Any) -> Any:
    """Make numbers and booleans of TOML texts where texts are expected."""
    if key == "env_vars" and isinstance(value, dict):
        return {name: str(item) for name, item in value.items()}
    if key in ("mounts", "startup_commands") and isinstance(value, str):
        return [value]
    if key in ("mem", "time", "build_time") and not isinstance(value, str):
        return str(value)
    return value


def _unknown_profile_error(file: EnvFile, wanted: str, chain: list[str]) -> ConfigError | UnknownNameError:
    if file.path is None:
        return ConfigError(
            f"Profile '{wanted}' is needed, but there is no {NAME} in this folder or above.",
            hint=f'Write one, with [{wanted}], executor = "slurm", host = …, or name it in {VARIABLES[0]}.',
        )
    if wanted in RESERVED:
        return ConfigError(
            f"[{wanted}] of {file.path} is not a profile; its profiles: {', '.join(file.profiles)}."
        )
    if chain:
        return ConfigError(f"{file.path}: [{chain[-1]}] extends '{wanted}'{suggest(wanted, file.profiles)}")
    return UnknownNameError("profile", wanted, file.profiles, hint=f"They are the sections of {file.path}.")


def _manifests_folder(section: Row, path: Path) -> Path | None:
    """Return the folder that `[artifacts.manifest]` names, if it lies in a file system."""
    manifest = section.get("manifest")
    if not isinstance(manifest, dict):
        return None
    root = _read_text_setting(manifest, "root", path, "artifacts.manifest")
    if root and "://" not in root:
        return Path(root).expanduser()
    return None


def _read_text_setting(section: Row, key: str, path: Path, name: str = "wandb") -> str | None:
    value = section.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{path}: {key} in [{name}]: expected text.")
    return value
