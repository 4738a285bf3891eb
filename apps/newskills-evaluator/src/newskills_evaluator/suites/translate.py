# SPDX-License-Identifier: Apache-2.0
"""Suites (`services:`, `benchmarks:`) → configurations of the launcher, one for each model that is evaluated.

What newskills has nothing for is told with its key; what it does otherwise is a note.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from newskills.base.errors import suggest
from newskills.base.records import Row
from newskills_evaluator.compile.problems import ConfigProblem
from newskills_evaluator.compile.tree import without_nulls
from newskills_evaluator.deployments.clients import base_of
from newskills_evaluator.nel_environments import PREFIX
from newskills_evaluator.suites import agents
from newskills_evaluator.suites.places import deployment_of, execution_of, section_of
from newskills_evaluator.tasks import LM_EVAL, SHOT_TASKS, map_task, own_names

NEWER = "the format of nemo-evaluator 0.3 and later, with services and benchmarks"
TOP = ("services", "sandboxes", "benchmarks", "cluster", "output")
SOLVERS = ("simple", "container", *agents.SOLVERS)
HARMLESS = (
    "turn_counter",
    "caching",
    "endpoint",
    "finish_reason",
    "http_pairs_dump",
    "log_tokens",
    "progress_tracking",
    "raise_client_errors",
    "request_logging",
    "response_stats",
)
"""Interceptors without which requests and answers are the same."""
UNUSED = ("context_window", "skip_failed", "timeout", "max_system_retries")
"""Keys of a benchmark that change no score."""
SHUFFLE_SEED = 42
"""With which nel draws `max_problems`, where a benchmark sets no `shuffle_seed`."""
_KEY = re.compile(r"\$\{([A-Za-z_]\w*)(?::-[^}]*)?\}\Z", re.ASCII)
_IMAGE_TASKS = {"MMBench_DEV_EN": "mmbench", "MMBench_DEV_CN": "mmbench-cn"}
_ELSEWHERE = {
    "harbor": "tasks for agents in containers, run by nel itself",
    "gym": "an environment behind HTTP, run by nel itself",
    "vlmevalkit": "a dataset of VLMEvalKit, run by nel itself",
}


class ServiceConfig(Struct, frozen=True, kw_only=True):
    """All benchmarks of one service, as a configuration of the launcher. `notes`: what is done otherwise."""

    service: str
    config: Row
    notes: tuple[str, ...] = ()


class _SuiteTranslator:
    def __init__(self, tree: Row, problems: list[ConfigProblem]) -> None:
        self.tree, self.problems = tree, problems
        self.services = section_of(tree.get("services"))
        self.tasks: dict[str, list[Row]] = {}
        self.notes: dict[str, list[str]] = {}

    def add_fault(self, path: Sequence[str | int], what: str) -> None:
        self.problems.append(ConfigProblem(tuple(map(str, path)), what))

    def add_benchmark(self, at: int, benchmark_config: Any) -> None:
        path = ("benchmarks", at)
        if not isinstance(benchmark_config, dict) or not isinstance(benchmark_config.get("name"), str):
            if isinstance(benchmark_config, dict) and "playbook" in benchmark_config:
                self.add_fault((*path, "playbook"), "playbooks are for agents, run by nel itself")
            else:
                self.add_fault(path, "a benchmark needs a name")
            return
        solver = section_of(benchmark_config.get("solver"))
        kind, service = str(solver.get("type", "")), str(solver.get("service", ""))
        if kind not in SOLVERS:
            self.add_fault((*path, "solver", "type"), f"newskills has no solver '{kind}': {', '.join(SOLVERS)}")
            return
        if service not in self.services:
            self.add_fault(
                (*path, "solver", "service"), f"there is no service '{service}'{suggest(service, self.services)}"
            )
            return
        name = self.map_name(benchmark_config["name"], path)
        if name:
            self.tasks.setdefault(service, []).append(
                self.make_task(name, benchmark_config, solver, service, path)
            )

    def map_name(self, name: str, path: tuple[str | int, ...]) -> str:
        """Return newskills' name of the benchmark; empty where it has none."""
        scheme, colons, rest = name.partition("://")
        if not colons:
            scheme, rest = "", name
        if scheme == "lm-eval":
            return f"{LM_EVAL}{rest}"
        if scheme == "vlmevalkit" and rest in _IMAGE_TASKS:
            return _IMAGE_TASKS[rest]
        if scheme in ("", "harbor") and (for_agents := agents.agent_benchmark(rest)):
            return for_agents
        bare = rest
        if scheme == "container":
            bare = rest.rsplit("#", 1)[-1]
        if f".py:{PREFIX}" in bare:
            bare = bare.rpartition(".py:")[2]
        if scheme in ("", "skills", "container") and not bare.endswith(".py") and (mapped_task := map_task(bare)):
            if bare in SHOT_TASKS:
                return bare
            return mapped_task.benchmark
        close = suggest(bare, own_names())
        what = _ELSEWHERE.get(scheme, "newskills has no benchmark of this name")
        if scheme in _ELSEWHERE:
            close = ""
            if own := map_task(bare):
                close = f"; newskills' own is '{own.benchmark}'"
        self.add_fault((*path, "name"), f"'{name}': {what}{close}")
        return ""

    def make_task(
        self, name: str, benchmark_config: Row, solver: Row, service: str, path: tuple[str | int, ...]
    ) -> Row:
        model = section_of(self.services[service])
        proxy = section_of(model.get("proxy"))
        values = {**section_of(model.get("generation")), **section_of(solver.get("generation"))}
        own = section_of(benchmark_config.get("params"))
        extra: Row = {
            "num_repeats": benchmark_config.get("repeats"),
            "system_prompt": solver.get("system_prompt"),
            **section_of(own.get("extra")),
        }
        words = [
            f"++inference.{key}={json.dumps(values[key])}"
            for key in ("frequency_penalty", "presence_penalty", "stop")
            if values.get(key) is not None
        ]
        if body := section_of(proxy.get("extra_body")):
            words.append(f"++inference.extra_body={json.dumps(body)}")
        if name.startswith(LM_EVAL):
            words += self.harness_words(name, model, benchmark_config, service)
        if solver.get("type") in agents.SOLVERS:
            words += self.agent_words(name, benchmark_config, solver, service, path)
        self.apply_interceptors(proxy, extra, service)
        if words:
            extra["args"] = shlex.join(words)
        if judge := self.judge_params(benchmark_config, path):
            extra["judge"] = judge
        self.note_differences(benchmark_config, service, path)
        params = {
            "limit_samples": benchmark_config.get("max_problems"),
            "parallelism": benchmark_config.get("max_concurrent", 32),
            "temperature": values.get("temperature"),
            "top_p": values.get("top_p"),
            "max_new_tokens": values.get("max_tokens"),
            "request_timeout": proxy.get("request_timeout"),
            "max_retries": proxy.get("max_retries") or None,
            **{key: value for key, value in own.items() if key not in ("extra", "split")},
            "extra": {**extra, "dataset_split": own.get("split")},
        }
        return {
            "name": name,
            "endpoint_type": "completions" if model.get("protocol") == "completions" else "chat",
            "nemo_evaluator_config": {"config": {"params": without_nulls(params)}},
        }

    def harness_words(self, name: str, model: Row, benchmark_config: Row, service: str) -> list[str]:
        """Return the words for a task of lm-evaluation-harness."""
        words = []
        if model.get("protocol") != "completions":
            words.append("++apply_chat_template=true")
        if benchmark_config.get("fewshot") is not None:
            words.append(f"++num_fewshot={benchmark_config['fewshot']}")
        self.notes.setdefault(service, []).append(f"{name} needs pip install 'newskills[lm-eval]'")
        return words

    def agent_words(
        self, name: str, benchmark_config: Row, solver: Row, service: str, path: tuple[str | int, ...]
    ) -> list[str]:
        """Return the words for an agent; what newskills has nothing for is a fault."""
        sandbox = benchmark_config.get("sandbox")
        if isinstance(sandbox, str):
            sandbox = section_of(self.tree.get("sandboxes")).get(sandbox)
        mapped = agents.map_agent(name, solver, section_of(sandbox), self.services)
        if mapped.fault is not None:
            self.add_fault((*path, "solver", mapped.fault[0]), mapped.fault[1])
        self.notes.setdefault(service, []).extend(mapped.notes)
        return list(mapped.words)

    def apply_interceptors(self, proxy: Row, extra: Row, service: str) -> None:
        """Turn `system_message` into the system prompt; what would change requests otherwise is a fault."""
        for at, interceptor in enumerate(proxy.get("interceptors") or []):
            name = str(section_of(interceptor).get("name"))
            text = section_of(section_of(interceptor).get("config")).get("system_message")
            if name == "system_message" and isinstance(text, str):
                extra["system_prompt"] = text
            elif name not in HARMLESS:
                where = ("services", service, "proxy", "interceptors", at)
                self.add_fault(where, f"newskills has no interceptor '{name}', which changes requests or answers")

    def judge_params(self, benchmark_config: Row, path: tuple[str | int, ...]) -> Row | None:
        judge_metric = None
        for at, metric_config in enumerate(section_of(benchmark_config.get("scoring")).get("metrics") or []):
            metric, place = section_of(metric_config), (*path, "scoring", "metrics", at)
            kind = metric.get("type", "scorer")
            judge = section_of(self.services.get(str(metric.get("service"))))
            if kind == "judge" and judge.get("type") == "api":
                judge_metric = {
                    "url": base_of(str(judge.get("url"))),
                    "model_id": judge.get("model"),
                    "api_key": self.key_variable(judge, ("services", metric["service"])),
                    "temperature": metric.get("temperature"),
                    "max_new_tokens": section_of(judge.get("generation")).get("max_tokens"),
                }
            elif kind not in ("scorer", "sandbox"):
                self.add_fault(
                    (*place, "type"),
                    f"newskills has no metric '{kind}' for a model behind '{metric.get('service')}'",
                )
        if judge_metric:
            return without_nulls(judge_metric)
        return None

    def key_variable(self, service: Row, path: tuple[str | int, ...]) -> str | None:
        """Return the variable that holds the key: the key's value is never written."""
        api_key = service.get("api_key")
        if not api_key:
            return None
        if named := _KEY.match(str(api_key)):
            return named[1]
        self.add_fault(
            (*path, "api_key"), "keys are not written into files: write ${VARIABLE}, and export the variable"
        )
        return None

    def note_differences(self, benchmark_config: Row, service: str, path: tuple[str | int, ...]) -> None:
        for key in ("instruction_template", "verifier"):
            if benchmark_config.get(key):
                self.add_fault((*path, key), "newskills' benchmarks have prompts and graders of their own")
        notes = self.notes.setdefault(service, [])
        if scorers := [
            m.get("name")
            for m in map(section_of, section_of(benchmark_config.get("scoring")).get("metrics") or [])
            if m.get("type") != "judge"
        ]:
            notes.append(
                f"{benchmark_config['name']}: graded by newskills' own grader, not by {', '.join(map(str, scorers))}"
            )
        is_agent = section_of(benchmark_config.get("solver")).get("type") in agents.SOLVERS
        if not is_agent and section_of(benchmark_config.get("sandbox")).get("type", "none") != "none":
            notes.append(
                f"{benchmark_config['name']}: code runs in newskills' sandbox, not in the one of the config"
            )
        if benchmark_config.get("fewshot") is not None and not str(benchmark_config["name"]).startswith(
            "lm-eval:"
        ):
            notes.append(
                f"{benchmark_config['name']}: asked without the {benchmark_config['fewshot']} examples;"
                " do not compare the two numbers"
            )
        count, seed = benchmark_config.get("max_problems"), benchmark_config.get("shuffle_seed", SHUFFLE_SEED)
        if count and seed is not None:
            notes.append(
                f"{benchmark_config['name']}: the first {count} problems are asked, where nel draws {count} with seed"
                f" {seed}; do not compare the two numbers"
            )
        if unused := [key for key in UNUSED if key in benchmark_config]:
            notes.append(f"{benchmark_config['name']}: newskills ignores {', '.join(unused)}")


def parts_of(tree: Row, wanted: Sequence[str], problems: list[ConfigProblem]) -> list[ServiceConfig]:
    """Return a configuration for each model with benchmarks; problems are added to `problems`. `wanted`: names of
    benchmarks, empty means all."""
    suite = _SuiteTranslator(tree, problems)
    for name in tree:
        if name not in TOP:
            suite.add_fault((name,), f"the format has no such section{suggest(name, TOP)}")
    listed = tree.get("benchmarks")
    if not isinstance(listed, list):
        listed = []
    named = [str(section_of(item).get("name")) for item in listed]
    for name in wanted:
        if name not in named:
            suite.add_fault(("benchmarks",), f"there is no '{name}'{suggest(name, named)}")
    if not named:
        suite.add_fault(("benchmarks",), "expected a list of items with name and solver")
    for at, item in enumerate(listed):
        if not wanted or named[at] in wanted:
            suite.add_benchmark(at, item)
    return [_service_config(suite, name, tasks) for name, tasks in suite.tasks.items()]


def _service_config(suite: _SuiteTranslator, name: str, tasks: list[Row]) -> ServiceConfig:
    service = section_of(suite.services[name])
    key = suite.key_variable(service, ("services", name))
    execution, notes = execution_of(suite.tree, service, suite.add_fault)
    deployment, target = deployment_of(name, service, key, suite.add_fault)
    config = {
        "defaults": [{"execution": execution.pop("group")}, {"deployment": deployment.pop("group")}, "_self_"],
        "execution": execution,
        "deployment": deployment,
        "evaluation": {"tasks": tasks},
    }
    if target:
        config["target"] = target
    return ServiceConfig(
        service=name, config=config, notes=tuple(dict.fromkeys([*suite.notes.get(name, []), *notes]))
    )
