# SPDX-License-Identifier: Apache-2.0
"""What `ns evaluate` makes of a config: file and defaults, overrides, profile, overrides, references, types."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, UnknownNameError, suggest
from newskills.base.records import Row
from newskills_evaluator.compile import dialects, overrides
from newskills_evaluator.compile.defaults import compose_defaults
from newskills_evaluator.compile.files import BUILT_IN, EXAMPLE, File, find_config, read_config
from newskills_evaluator.compile.interpolate import MISSING, Resolver
from newskills_evaluator.compile.manifests import Manifests
from newskills_evaluator.compile.problems import ConfigProblem, raise_problems
from newskills_evaluator.compile.tree import format_path, get_section, iter_leaves, merge_trees
from newskills_evaluator.compile.typed import SECTIONS, ConfigReader, Sections
from newskills_evaluator.config import CompiledConfig, EnvMap, EnvValue, Mode, Profile
from newskills_evaluator.masking import masked_word
from newskills_evaluator.profiles import (
    EnvFile,
    find_env_file,
    find_misspelt_keys,
    merged_profile,
    profile_of,
    read_env_file,
)

DEFAULT = "default"
CONFIG_FOLDER = "evaluate_configs"
STEP_KEYS = ("dry_run", "output_dir", "task_filters")
"""Keys at the top with which a step of a pipeline wraps a configuration of the launcher."""
FILE_WINS = ("container_image", "nodes", "gpus_per_node", "ntasks_per_node", "nproc_per_node")
"""Keys of `run.env` for which the config file is asked before the profile."""
WANDB_KEYS = ("WANDB_API_KEY", "WANDB_PROJECT", "WANDB_ENTITY")


class CompileRequest(Struct, frozen=True, kw_only=True):
    """What the command line says. `overrides`: key → text, in their order."""

    mode: Mode = "local"
    config: str | None = None
    profile: str | None = None
    tasks: tuple[str, ...] = ()
    overrides: Mapping[str, str] = {}
    force_squash: bool = False
    dry_run: bool = False
    argv: tuple[str, ...] = ()


class CompilerResult(Struct, frozen=True):
    """`hidden`: texts that must not be shown: values of variables of keys that the config resolves itself.

    dry_run  the command line or the config asks for it
    open     what a run needs and a dry run does without, for people
    notes    what is done otherwise than the config says, for people
    """

    config: CompiledConfig
    hidden: frozenset[str] = frozenset()
    dry_run: bool = False
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def compile_config(request: CompileRequest, environ: Mapping[str, str], cwd: Path) -> CompilerResult:
    """Compile the configuration that `request` asks for. Raises UserError: for the profile and for names of tasks at
    once, for all else with everything that is wrong."""
    try:
        file, env_file = named_file(request, environ, cwd)
        return compile_file(request, file, environ, env_file)
    except RecursionError as error:
        raise too_deep(request) from error


def compile_file(
    request: CompileRequest, file: File, environ: Mapping[str, str], env_file: EnvFile
) -> CompilerResult:
    """Compile the configuration `file`, which has been read already, as `compile_config` does. Raises UserError,
    RecursionError."""
    _check_named(request, file.path)
    tree, plain = _compose_with_overrides(file, request)
    return compile_tree(request, file.path, tree, environ, env_file, overriding=plain)


def too_deep(request: CompileRequest) -> ConfigError:
    return ConfigError(f"{request.config or DEFAULT}: the configuration is nested too deeply.")


def named_file(request: CompileRequest, environ: Mapping[str, str], cwd: Path) -> tuple[File, EnvFile]:
    """Read the file that `-c` names, as it stands, and env.toml. Raises UserError."""
    env_file = read_env_file(find_env_file(cwd, environ))
    return read_config(find_config(request.config or DEFAULT, _config_folders(env_file, cwd))), env_file


def compile_tree(
    request: CompileRequest,
    path: Path,
    tree: Row,
    environ: Mapping[str, str],
    env_file: EnvFile,
    *,
    overriding: Mapping[str, str] = {},
) -> CompilerResult:
    """Compile the composed `tree` of the file at `path`: profile, overrides, references, types. Raises UserError.

    `overriding`: those of the overrides that win over the profile, too.
    """
    settings = merged_profile(env_file, request.profile) if request.profile else {}
    _add_run(tree, request, settings, env_file)
    overrides.apply_overrides(tree, overriding)
    dialects.protect_variables(tree, environ)
    _fill_execution(tree)
    _choose_tasks(tree, request.tasks or _pop_task_filters(tree), environ)
    _forget_target(tree, environ)
    resolver = Resolver(tree, environ, Manifests(env_file.manifests))
    resolved = resolver.resolve_tree()
    resolved["run"] |= _run_provenance(request)
    problems = resolver.problems
    problems += _misspelt_key_problems(settings, tree)
    _check_sections(resolved, str(path))
    dry_run = (resolved.pop("dry_run", False) is True) or request.dry_run
    _place_output(resolved)
    compiled = _build_config(request, str(path), resolved, env_file, resolver)
    raise_problems([problem for problem in problems if not (dry_run and problem.open)], str(path))
    left = tuple(f"{format_path(problem.path)}: {problem.what}" for problem in problems)
    return CompilerResult(compiled, frozenset(resolver.secrets), dry_run, left)


def _check_named(request: CompileRequest, path: Path) -> None:
    """Raise ConfigError where neither a configuration nor a server to evaluate with newskills' own one is named."""
    if (
        request.config is None
        and path.parent == BUILT_IN
        and not any(key.startswith("target") for key in request.overrides)
    ):
        raise ConfigError(
            "No config is given. Give one with -c.",
            hint=f"For example: {EXAMPLE}\nWithout a config, three short benchmarks run against the server "
            "given by target.api_endpoint.url=… and target.api_endpoint.model_id=….",
        )


def _check_sections(resolved: Row, source: str) -> None:
    """Raise ConfigError for a file that is made for another program: it has no section that is read here."""
    if any(name in resolved for name in SECTIONS if name != "run"):
        return
    foreign = [name for name in resolved if name not in ("run", *STEP_KEYS)]
    near_names = [name for name in foreign if "did you mean" in suggest(name, SECTIONS)]
    if foreign and not near_names:
        keys = ", ".join(foreign[:6])
        if len(foreign) > 6:
            keys += ", …"
        raise ConfigError(
            f"{source} is a config of another program: it has the keys {keys}, and none of execution, deployment, "
            "target and evaluation, which ns evaluate reads.",
            hint=f"For your own config: {EXAMPLE}",
        )


def _pop_task_filters(tree: Row) -> tuple[str, ...]:
    """Return `task_filters`, which is what `-t` says, in the file. Raises ConfigError."""
    listed = tree.pop("task_filters", None) or []
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise ConfigError("task_filters: expected a list of task names.")
    return tuple(listed)


def _place_output(resolved: Row) -> None:
    """Move `output_dir` of the file to `execution`, unless that has one."""
    folder = resolved.pop("output_dir", None)
    execution = resolved.get("execution")
    if folder and isinstance(execution, dict) and not execution.get("output_dir"):
        execution["output_dir"] = folder


def _config_folders(env_file: EnvFile, cwd: Path) -> list[Path]:
    """Return the folders of the project's configs: what `[cli] config_dir` of env.toml says, else
    `evaluate_configs`."""
    root = env_file.path.parent if env_file.path else cwd
    named = env_file.cli.get("config_dir")
    if named is not None and not isinstance(named, str):
        raise ConfigError(f"{env_file.path}: config_dir in [cli]: expected the path of one folder.")
    if named:
        return [root / Path(named).expanduser()]
    return list(dict.fromkeys([cwd / CONFIG_FOLDER, root / CONFIG_FOLDER]))


def _compose_with_overrides(file: File, request: CompileRequest) -> tuple[Row, dict[str, str]]:
    """Return the file with its defaults and the overrides, and those of the overrides that set a key.

    Those that name a group of its defaults choose another option instead.
    """
    _, groups = compose_defaults(file, {})
    choices = overrides.group_choices(request.overrides, groups)
    tree, _ = compose_defaults(file, choices)
    plain = {key: text for key, text in request.overrides.items() if key not in choices}
    overrides.apply_overrides(tree, plain)
    return tree, plain


def _add_run(tree: Row, request: CompileRequest, settings: Row, env_file: EnvFile) -> None:
    """Add `run.env`, the file's with the profile over it, and `run.wandb`, that of env.toml."""
    run = get_section(tree, "run")
    wandb = {key: value for key, value in msgspec.structs.asdict(env_file.wandb).items() if value is not None}
    env = _with_aliases(_merged_env(get_section(run, "env"), settings))
    env.setdefault("executor", "local")
    if partition := env.get(f"{request.mode}_partition"):
        env["partition"] = partition
    tree["run"] = {
        **run,
        "env": env,
        "wandb": merge_trees(run.get("wandb") or {}, wandb),
    }


def _fill_execution(tree: Row) -> None:
    """Fill in what a configuration for Slurm may leave out: a folder below that of the profile, one task per node."""
    execution, env = tree.get("execution"), tree["run"]["env"]
    if not isinstance(execution, dict) or "slurm" not in (execution.get("type"), env.get("executor")):
        return
    if execution.get("output_dir") in (None, MISSING) and not tree.get("output_dir") and env.get("remote_job_dir"):
        execution["output_dir"] = "${run.env.remote_job_dir}/evaluations"
    if execution.get("ntasks_per_node") in (None, MISSING):
        execution["ntasks_per_node"] = 1


def _run_provenance(request: CompileRequest) -> Row:
    """Return where the run comes from: mode, profile and the words of the command line, without secrets."""
    words = [masked_word(key, text, overrides.value_of(text)) for key, text in request.overrides.items()]
    return {
        "mode": request.mode,
        "profile": request.profile,
        "cli": {"argv": list(request.argv), "overrides": words},
    }


def _merged_env(own: Row, settings: Row) -> Row:
    merged: Row = {**own, **settings}
    for key in FILE_WINS:
        if own.get(key) is not None:
            merged[key] = own[key]
    if variables := {**(own.get("env_vars") or {}), **(settings.get("env_vars") or {})}:
        merged["env_vars"] = variables
    if mounts := [*_as_text_list(own.get("mounts")), *_as_text_list(settings.get("mounts"))]:
        merged["mounts"] = list(dict.fromkeys(mounts))
    return merged


def _with_aliases(env: Row) -> Row:
    """Set both `container` and `container_image`, which name one thing, whichever of them a config refers to."""
    image = env.get("container_image", env.get("container"))
    if image is not None:
        return {**env, "container": image, "container_image": image}
    return env


def _as_text_list(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    if value:
        return [str(value)]
    return []


def _choose_tasks(tree: Row, wanted: Sequence[str], environ: Mapping[str, str]) -> None:
    """Keep only the tasks that `-t` names, in the config's order. `name.1`: the second task, called `name`.

    Raises UnknownNameError that lists what exists.
    """
    evaluation = get_section(tree, "evaluation")
    tasks = evaluation.get("tasks")
    if not wanted or not isinstance(tasks, list):
        return
    resolver = Resolver(tree, environ)
    names = []
    for at, task in enumerate(tasks):
        name = ""
        if isinstance(task, dict) and task.get("name"):
            name = str(resolver.resolve_path(("evaluation", "tasks", str(at), "name")))
        names.append(name)
    places = [f"{name}.{at}" for at, name in enumerate(names)]
    for wanted_task in wanted:
        if wanted_task not in names and wanted_task not in places:
            several = [place for place in places if names.count(place.rpartition(".")[0]) > 1]
            raise UnknownNameError(
                "task",
                wanted_task,
                [*names, *several],
                hint=f"The config has: {', '.join([*dict.fromkeys(names), *several])}.",
            )
    evaluation["tasks"] = [
        task for task, name, place in zip(tasks, names, places, strict=True) if name in wanted or place in wanted
    ]


def _forget_target(tree: Row, environ: Mapping[str, str]) -> None:
    """Drop what `target` leaves open where a server is deployed: its address is not known yet."""
    endpoint = get_section(tree, "target").get("api_endpoint")
    try:
        kind = Resolver(tree, environ).resolve_path(("deployment", "type"))
    except KeyError:
        return
    if kind != "none" and isinstance(endpoint, dict):
        tree["target"]["api_endpoint"] = {key: value for key, value in endpoint.items() if value != MISSING}


def _build_config(
    request: CompileRequest, source: str, resolved: Row, env_file: EnvFile, resolver: Resolver
) -> CompiledConfig:
    problems = resolver.problems
    variables = dialects.read_variables(resolved, problems)
    sections = ConfigReader(resolved, problems, resolver.unset).read_sections(variables)
    run = resolved["run"]
    exporters = get_section(resolved, "export")
    export = {name: value for name, value in exporters.items() if isinstance(value, dict)}
    export.pop(dialects.KEY, None)
    if "wandb" in sections.execution.auto_export or "wandb" in export:
        variables = _with_wandb(variables)
        tasks = tuple(msgspec.structs.replace(task, env={**_wandb_env(), **task.env}) for task in sections.tasks)
        sections = msgspec.structs.replace(sections, tasks=tasks)
    rest = {key: copy.deepcopy(value) for key, value in resolved.items() if key != "run"}
    env = {key: value for key, value in run["env"].items() if value is not None}
    profile = profile_of(request.profile, env) if request.profile else None
    if profile is not None:
        problems += _find_place_conflicts(profile, sections)
    if not problems:
        rest = dialects.write_variables(rest, variables, "0.2")
    return CompiledConfig(
        mode=request.mode,
        source=source,
        config=rest,
        run=run,
        execution=sections.execution,
        deployment=sections.deployment,
        target=sections.target,
        tasks=sections.tasks,
        profile=profile,
        wandb=env_file.wandb,
        export=export,
        export_env=variables.export,
        force_squash=request.force_squash,
    )


def _find_place_conflicts(profile: Profile, sections: Sections) -> list[ConfigProblem]:
    """List where the profile and the config name different places."""
    conflicts = []
    if profile.is_slurm and sections.execution.is_local:
        what = f"profile [{profile.name}] is a Slurm cluster, but the config says to run here; "
        what += "write ${run.env.executor}"
        conflicts.append(ConfigProblem(("execution", "type"), what, "slurm"))
    images = [profile.container_image, sections.deployment.image, *(task.container for task in sections.tasks)]
    own = all(task.benchmark for task in sections.tasks)
    if profile.needs_images and own and not any(images):
        what = f"profile [{profile.name}] has executor docker, but no container_image"
        conflicts.append(ConfigProblem(("run", "env", "container_image"), what, "IMAGE"))
    return conflicts


def _misspelt_key_problems(settings: Row, tree: Row) -> list[ConfigProblem]:
    """List keys of the profile that nothing in the config refers to, and that resemble known keys."""
    texts = [value for _, value in iter_leaves({**tree, "run": {}}) if isinstance(value, str)]
    suggestions = find_misspelt_keys(settings, lambda key: any(f"run.env.{key}" in text for text in texts))
    return [ConfigProblem(("run", "env", key), what) for key, what in suggestions.items()]


def _wandb_env() -> EnvMap:
    return {name: EnvValue("host", name) for name in WANDB_KEYS}


def _with_wandb(variables: dialects.DialectVariables) -> dialects.DialectVariables:
    """Add names of variables, never values: what is not set when the jobs are submitted is left out then."""
    return msgspec.structs.replace(
        variables,
        evaluation={**_wandb_env(), **variables.evaluation},
        export={**_wandb_env(), **variables.export},
    )
