# SPDX-License-Identifier: Apache-2.0
"""Resolved sections → structs. What is missing or does not fit is collected, with an example where one helps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct

from newskills.base.errors import suggest
from newskills.base.records import Row
from newskills.base.type_errors import type_fault
from newskills_evaluator.compile.dialects import KEY, DialectVariables
from newskills_evaluator.compile.problems import ConfigProblem
from newskills_evaluator.compile.tree import Path, format_path, merge_trees
from newskills_evaluator.config import (
    Deployment,
    DeploymentType,
    EnvValue,
    EvaluationTask,
    ExecutionSection,
    Params,
    Target,
)
from newskills_evaluator.tasks import map_task

S = TypeVar("S", bound=Struct)

SECTIONS = ("run", "execution", "deployment", "target", "evaluation", "export", KEY, "auxiliary_deployments")
EVALUATION_KEYS = ("tasks", "nemo_evaluator_config", KEY, "pre_cmd", "post_cmd")
TASK_KEYS = (
    "name",
    "container",
    "endpoint_type",
    KEY,
    "nemo_evaluator_config",
    "dataset_dir",
    "dataset_mount_path",
    "pre_cmd",
    "post_cmd",
)
UNREAD_TASK_KEYS = ("config", "target")
"""Sections of `nemo_evaluator_config` that stand beside it by mistake: the launcher takes them and reads nothing."""
TYPES: tuple[str, ...] = get_args(DeploymentType)
NEEDED: dict[str, dict[str, object]] = {
    "local": {"output_dir": "./evaluations"},
    "slurm": {
        "hostname": "login.example.org",
        "output_dir": "/shared/evaluations",
        "gres": "gpu:8",
    },
}
"""Keys of `execution` without which a place cannot be used, with examples."""
DEPLOYED: dict[str, dict[str, object]] = {
    "generic": {"command": "python server.py --port 8000", "served_model_name": "my-model"},
    "nim": {"image": "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.6", "served_model_name": "my-model"},
    **{kind: {"served_model_name": "my-model"} for kind in ("vllm", "vllm_ray", "sglang", "trtllm")},
}


class Sections(Struct, frozen=True, kw_only=True):
    execution: ExecutionSection
    deployment: Deployment
    target: Target
    tasks: tuple[EvaluationTask, ...]


class ConfigReader:
    """Reads one resolved configuration; `problems` grows. `unset`: variables whose defaults stand at a path."""

    def __init__(self, config: Row, problems: list[ConfigProblem], unset: Mapping[Path, str]) -> None:
        self.config, self.problems, self.unset = config, problems, unset

    def read_sections(self, variables: DialectVariables) -> Sections:
        for name in self.config:
            close = suggest(name, SECTIONS)
            if name not in SECTIONS and "did you mean" in close:
                self.problems.append(ConfigProblem((name,), f"there is no such section{close}"))
        deployment = self.deployment(variables)
        return Sections(
            execution=self.execution(),
            deployment=deployment,
            target=self.target(needed=not deployment.is_served),
            tasks=self.tasks(variables),
        )

    def execution(self) -> ExecutionSection:
        path = ("execution",)
        section = self._get_section(self.config, path)
        kind = section.get("type")
        if kind is None:
            self._report_missing((*path, "type"), "slurm")
        for key, example in NEEDED.get(str(kind), {}).items():
            if key not in section or (section[key] is None and key != "gres"):
                self._report_missing((*path, key), example, open=True)
        mounts = self._get_section(section, (*path, "mounts"))
        proxy = self._get_section(section, (*path, "proxy"))
        export = self._get_section(section, (*path, "auto_export"))
        self._report_unknown_keys(
            mounts, ("deployment", "evaluation", "auxiliary", "mount_home"), (*path, "mounts")
        )
        destinations: Any = ()
        if export.get("enabled", True):
            destinations = export.get("destinations") or ()
        if isinstance(destinations, str):
            destinations = [destinations]
        values = {
            **{key: value for key, value in section.items() if key not in ("mounts", "proxy", "auto_export")},
            "type": "" if kind is None else kind,
            "output_dir": section.get("output_dir") or "",
            "sbatch": self._get_section(section, (*path, "sbatch_extra_flags")),
            "deployment_mounts": self._get_section(mounts, (*path, "mounts", "deployment")),
            "evaluation_mounts": self._get_section(mounts, (*path, "mounts", "evaluation")),
            "mount_home": mounts.get("mount_home", False),
            "proxy_image": proxy.get("image"),
            "auto_export": destinations,
        }
        return self._read_struct(ExecutionSection, values, path, ExecutionSection(type="", output_dir=""))

    def deployment(self, variables: DialectVariables) -> Deployment:
        path = ("deployment",)
        section = self._get_section(self.config, path)
        kind = section.get("type")
        if kind is None:
            self._report_missing((*path, "type"), "none")
        elif kind not in TYPES:
            self.problems.append(
                ConfigProblem((*path, "type"), f"'{kind}' is not a kind of deployment{suggest(str(kind), TYPES)}")
            )
        for key, example in DEPLOYED.get(str(kind), {}).items():
            if section.get(key) is None:
                self._report_missing((*path, key), example, open=True)
        endpoints = self._get_section(section, (*path, "endpoints"))
        values = {
            **{key: value for key, value in section.items() if value is not None},
            "type": kind if kind in TYPES else "none",
            **{key: endpoints[key] for key in ("health", "chat", "completions") if endpoints.get(key) is not None},
        }
        if section.get("health_check_path") and "health" not in endpoints:
            values["health"] = section["health_check_path"]
        own = self._get_section(self._get_section(self.config, ("execution",)), ("execution", "deployment"))
        if own.get("n_tasks") is not None:
            values["n_tasks"] = own["n_tasks"]
        return msgspec.structs.replace(
            self._read_struct(Deployment, values, path, Deployment()), env=variables.deployment
        )

    def target(self, *, needed: bool) -> Target:
        path = ("target", "api_endpoint")
        section = self._get_section(self._get_section(self.config, path[:1]), path)
        if needed:
            for key, example in {"url": "http://localhost:8000/v1", "model_id": "my-model"}.items():
                if section.get(key) == "":
                    name = self.unset.get((*path, key))
                    if name:
                        what = f"it is empty: the variable {name} is not set"
                    else:
                        what = "it is empty"
                    self.problems.append(ConfigProblem((*path, key), what, example, open=True))
                elif not section.get(key):
                    self._report_missing((*path, key), example, open=True)
        return self._read_struct(
            Target, {key: value for key, value in section.items() if value is not None}, path, Target()
        )

    def tasks(self, variables: DialectVariables) -> tuple[EvaluationTask, ...]:
        path = ("evaluation",)
        section = self._get_section(self.config, path)
        self._report_unknown_keys(section, EVALUATION_KEYS, path)
        listed = section.get("tasks")
        if not listed:
            self._report_missing((*path, "tasks"), [{"name": "gsm8k"}])
            return ()
        if not isinstance(listed, list):
            self.problems.append(
                ConfigProblem((*path, "tasks"), "expected a list, with lines such as '- name: gsm8k'")
            )
            return ()
        return tuple(self.task(section, task, at, variables) for at, task in enumerate(listed))

    def task(self, common: Row, task: Any, at: int, variables: DialectVariables) -> EvaluationTask:
        path = ("evaluation", "tasks", str(at))
        if not isinstance(task, dict) or not isinstance(task.get("name"), str) or not task["name"]:
            self.problems.append(ConfigProblem(path, "a task needs a name: write '- name: gsm8k'"))
            return EvaluationTask(index=at, name="", folder="")
        unread = tuple(key for key in UNREAD_TASK_KEYS if key in task)
        self._report_unknown_keys(
            {key: value for key, value in task.items() if key not in unread}, TASK_KEYS, path
        )
        settings = merge_trees(common.get("nemo_evaluator_config") or {}, task.get("nemo_evaluator_config") or {})
        mapped = map_task(task["name"])
        params_path = (*path, "nemo_evaluator_config", "config", "params")
        params = self._get_section(self._get_section(settings, params_path[:-1]), params_path)
        if mapped is not None:
            params = merge_trees(mapped.params, params)
        unused = set(params) - set(Params.__struct_fields__)
        self._report_unknown_keys(dict.fromkeys(unused), Params.__struct_fields__, params_path)
        values: Row = {
            **{
                key: value
                for key, value in task.items()
                if value is not None and key not in (KEY, "nemo_evaluator_config")
            },
            "index": at,
            "folder": f"{_folder_name(task['name'])}.{at}",
            "benchmark": mapped.benchmark if mapped else None,
            "few_shot": mapped.few_shot if mapped else None,
            "pre_cmd": task.get("pre_cmd") or common.get("pre_cmd") or "",
            "post_cmd": task.get("post_cmd") or common.get("post_cmd") or "",
            "settings": settings,
            "unread": unread,
        }
        done = self._read_struct(
            EvaluationTask, values, path, EvaluationTask(index=at, name=task["name"], folder=values["folder"])
        )
        env: dict[str, EnvValue] = {**variables.evaluation, **variables.tasks[at]}
        kept = {key: value for key, value in params.items() if value is not None and key not in unused}
        return msgspec.structs.replace(
            done, params=self._read_struct(Params, kept, params_path, Params()), env=env
        )

    def _get_section(self, tree: Row, path: Path) -> Row:
        """Return the section at `path`, which is the value of its last part in `tree`; empty where there is none."""
        section_value = tree.get(path[-1])
        if section_value is None:
            return {}
        if not isinstance(section_value, dict):
            self.problems.append(ConfigProblem(path, "expected a section of keys, not a value"))
            return {}
        return section_value

    def _read_struct(self, cls: type[S], values: Row, path: Path, fallback: S) -> S:
        """Convert each key on its own, so that every fault is found; other keys are the launcher's."""
        done: Row = {}
        for field in msgspec.structs.fields(cls):
            if field.name not in values or field.name == "env":
                continue
            try:
                done[field.name] = _convert_value(values[field.name], field.type)
            except msgspec.ValidationError as error:
                self.problems.append(ConfigProblem((*path, field.name), type_fault(error, values[field.name])))
        return msgspec.structs.replace(fallback, **done)

    def _report_missing(self, path: Path, example: object, *, open: bool = False) -> None:
        if not any(problem.path == path for problem in self.problems):
            self.problems.append(ConfigProblem(path, f"the key '{path[-1]}' is missing", example, open=open))

    def _report_unknown_keys(self, section: Row, known_keys: Sequence[str], path: Path) -> None:
        for key in section:
            if key not in known_keys:
                what = f"{format_path(path)} has no such key{suggest(str(key), known_keys)}"
                self.problems.append(ConfigProblem((*path, str(key)), what))


def _convert_value(value: Any, kind: Any) -> Any:
    """Convert `value` to the type `kind`; a number where a text is expected becomes its text. Raises
    ValidationError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and kind in (str, str | None):
        value = str(value)
    return msgspec.convert(value, kind, strict=False)


def _folder_name(task: str) -> str:
    """Return `harness.task` as it is; a path of a benchmark file in letters that names of jobs may have."""
    return re.sub(r"[^A-Za-z0-9_.+=@-]+", "_", task).strip("._")[-80:] or "task"
