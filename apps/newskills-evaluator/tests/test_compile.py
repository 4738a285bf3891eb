# SPDX-License-Identifier: Apache-2.0
"""Configs: defaults, overrides, profiles, references, both dialects, and every fault at once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.records import Row
from newskills_evaluator.compile.compiler import CompileRequest, CompilerResult, compile_config
from newskills_evaluator.config import CompiledConfig, EnvValue, Mode

CONFIGS = Path(__file__).parent / "configs"
ENVIRON = {"HOME": "/home/me", "USER": "me", "LOGNAME": "me", "HOSTNAME": "login", "MY_SECRET": "sk-hidden-0123"}
ENV_TOML = """
[wandb]
project = "mine"
entity = "us"

[cluster]
executor = "slurm"
host = "login.example.org"
account = "acc"
container = "nvcr.io/x:1"
mounts = ["/a:/a"]
env_vars = { A = "1", B = "1" }

[laptop]
extends = "cluster"
executor = "docker"

[cluster-short]
extends = "cluster"
time = "00:30:00"
env_vars = { B = "2" }
"""


def compiled(
    folder: Path,
    name: str,
    *words: str,
    profile: str | None = None,
    tasks: tuple[str, ...] = (),
    dry_run: bool = False,
) -> CompilerResult:
    overrides = dict(word.split("=", 1) for word in words)
    mode: Mode = "run" if profile else "local"
    asked = CompileRequest(
        mode=mode, config=name, profile=profile, tasks=tasks, overrides=overrides, dry_run=dry_run
    )
    return compile_config(asked, ENVIRON, folder)


def made(folder: Path, text: str | Row, *words: str, **options: Any) -> CompiledConfig:
    content = text if isinstance(text, str) else yaml.safe_dump(text)
    (folder / "config.yaml").write_text(content)
    return compiled(folder, str(folder / "config.yaml"), *words, **options).config


MINIMAL: Row = {
    "execution": {"type": "local", "output_dir": "out"},
    "deployment": {"type": "none"},
    "target": {"api_endpoint": {"url": "http://localhost:1/v1", "model_id": "m"}},
    "evaluation": {"tasks": [{"name": "gsm8k"}]},
}


def test_names_per_section_become_values_with_their_origin(tmp_path: Path) -> None:
    (tmp_path / "env.toml").write_text(ENV_TOML)
    made = compiled(tmp_path, str(CONFIGS / "names.yaml"), profile="cluster-short").config
    assert made.execution.type == "slurm"
    assert made.execution.hostname == "login.example.org"
    assert (made.execution.walltime, made.execution.account) == ("00:30:00", "acc")
    assert made.execution.output_dir == "/shared/me/evaluations"
    assert made.deployment.env == {
        "HF_HOME": EnvValue("lit", "/cache/hf"),
        "HF_TOKEN": EnvValue("host", "HF_TOKEN"),
        "QUIET": EnvValue("lit", "1"),
    }
    assert made.deployment.extra_args == "--max-model-len 8000"
    assert "vllm serve /checkpoint --tensor-parallel-size=2" in (made.deployment.command or "")
    first, second, third, fourth = made.tasks
    assert first.benchmark == "mmlu"
    assert (first.params.parallelism, first.params.limit_samples, first.params.top_p) == (2, 10, 0.0)
    assert first.params.extra == {"tokenizer": "/shared/models/small/tokenizer"}
    assert (second.benchmark, second.few_shot) == ("lm-eval:arc_challenge", 25)
    assert third.env["HF_TOKEN"] == EnvValue("host", "HF_TOKEN")
    assert "HF_TOKEN" not in fourth.env
    assert fourth.env["JUDGE_API_KEY"] == EnvValue("host", "MY_JUDGE_KEY")
    assert fourth.env["WANDB_API_KEY"] == EnvValue("host", "WANDB_API_KEY")
    assert [task.folder for task in made.tasks][2:] == ["hellaswag.2", "hellaswag.3"]
    assert made.export["wandb"] == {"entity": "us", "project": "mine"}
    assert "env_vars" not in made.config["execution"]
    assert made.config["deployment"]["env_vars"]["HF_TOKEN"] == "host:HF_TOKEN"
    assert made.config["evaluation"]["env_vars"]["JUDGE_API_KEY"] == "host:MY_JUDGE_KEY"
    assert "run" not in made.config
    assert made.profile is not None
    assert made.profile.env_vars == {"A": "1", "B": "2"}
    assert made.profile.tunnel is None
    assert [image.path for image in made.images()] == ["deployment.image", "execution.proxy.image"]


def test_values_with_their_origin_stay_so_and_secrets_stay_names(tmp_path: Path) -> None:
    found = compiled(tmp_path, str(CONFIGS / "values.yaml"))
    made = found.config
    assert made.target.url == "http://localhost:8000/v1/chat/completions"
    assert made.target.model_id == "small"
    aime, gsm8k = made.tasks
    assert (aime.benchmark, aime.params.extra["num_repeats"], aime.params.temperature) == ("aime25", 4, 1e-07)
    assert (gsm8k.benchmark, gsm8k.endpoint_type) == ("gsm8k:2", "completions")
    assert gsm8k.env["HF_HOME"] == EnvValue("lit", "/other")
    assert aime.env == {
        "HF_TOKEN": EnvValue("host", "MY_TOKEN"),
        "HF_HOME": EnvValue("lit", "/cache/hf"),
        "NODE": EnvValue("runtime", "HOSTNAME"),
        "SECRET": EnvValue("host", "MY_SECRET"),
    }
    assert aime.pre_cmd == "echo ${HOME} before"
    assert "sk-hidden" not in repr(made)
    assert "env_vars" not in made.config
    assert made.config["evaluation"]["env_vars"]["HF_TOKEN"] == "host:MY_TOKEN"


def test_a_value_of_a_key_that_the_config_resolves_is_known_as_one(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(
            MINIMAL | {"target": {"api_endpoint": {"url": "http://x/${oc.env:MY_SECRET}", "model_id": "m"}}}
        )
    )
    found = compiled(tmp_path, str(tmp_path / "config.yaml"))
    assert found.hidden == {"sk-hidden-0123"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("execution.output_dir=/x",), ("execution", "output_dir", "/x")),
        (("++execution.note=[1,{a: b}]",), ("execution", "note", [1, {"a": "b"}])),
        (("deployment.a.b=null",), ("deployment", "a", {"b": None})),
        (("evaluation.tasks.0.container=c:1",), ("evaluation", "tasks", [{"name": "gsm8k", "container": "c:1"}])),
        (("evaluation.tasks[0].container=c:1",), ("evaluation", "tasks", [{"name": "gsm8k", "container": "c:1"}])),
        (
            ("evaluation.tasks.gsm8k.container=c:1",),
            ("evaluation", "tasks", [{"name": "gsm8k", "container": "c:1"}]),
        ),
        (("execution.n=${execution.type}-${.output_dir}",), ("execution", "n", "local-out")),
        (("execution.n=a", "execution.n=b"), ("execution", "n", "b")),
    ],
)
def test_words_of_the_command_line_change_the_config(
    tmp_path: Path,
    words: tuple[str, ...],
    expected: tuple[str, str, object],
) -> None:
    words = tuple(word.removeprefix("++") for word in words)
    section, key, value = expected
    assert made(tmp_path, MINIMAL, *words).config[section][key] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${target.api_endpoint.model_id}", "m"),
        ("${evaluation.tasks[0].name}", "gsm8k"),
        ("${..deployment.type}", "none"),
        ("${oc.env:NOPE,7}", "7"),
        ("${oc.env:NOPE,null}", None),
        ("a${oc.env:NOPE,null}b", "ab"),
        ("${oc.env:NOPE,${oc.env:USER}}", "me"),
        ("${oc.select:nope.at.all,'a, b'}", "a, b"),
        ("${select_not_null:execution.none,/checkpoint}", "/checkpoint"),
        ("\\${HOME}/x", "${HOME}/x"),
        ("$HOME/$$x", "$HOME/$$x"),
        ("${execution.many}", {"a": [1, "local"]}),
        ("${evaluation.tasks}", [{"name": "gsm8k"}]),
    ],
)
def test_references_have_the_meaning_of_omegaconf(tmp_path: Path, text: str, value: Any) -> None:
    config = MINIMAL | {
        "execution": {**MINIMAL["execution"], "none": None, "many": {"a": [1, "${execution.type}"]}}
    }
    config["execution"]["x"] = text
    assert made(tmp_path, config).config["execution"]["x"] == value


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("${a.b}", "it refers to a.b, which does not exist"),
        ("${run.env.host}", "write host into the profile of env.toml"),
        ("${run.wandb.project}", "write project into the section [wandb] of env.toml"),
        ("${oc.env:NOPE}", "the variable NOPE is not set; export it, or write ${oc.env:NOPE,VALUE}"),
        ("${art:model,path}", "refers to run.model, which is not an artifact"),
        ("${now:%Y}", "there is no resolver 'now'"),
        ("${execution.x}", "form a circle"),
        ("x ${deployment}", "is a section, so it cannot be part of a text"),
        ("${a", "is not closed"),
        ("${.....x}", "points outside the configuration"),
        ("???", "it has no value yet"),
    ],
)
def test_what_cannot_be_resolved_is_told_with_its_place(tmp_path: Path, text: str, what: str) -> None:
    config = MINIMAL | {"execution": {**MINIMAL["execution"], "x": text}}
    with pytest.raises(ConfigError) as error:
        made(tmp_path, config)
    assert "execution.x: " in str(error.value)
    assert what in str(error.value)


def test_all_that_is_missing_is_told_at_once_with_the_sections_to_add(tmp_path: Path) -> None:
    broken = {
        "execution": {"type": "slurm", "num_nodes": "two"},
        "deployment": {"type": "vlm"},
        "evaluation": {"task": [], "tasks": [{"name": "gsm8k", "dataset": 1}, {"nam": "x"}]},
        "target": {"api_endpoint": {"url": "${oc.env:NOPE}"}},
        "exprt": {},
    }
    with pytest.raises(ConfigError) as error:
        made(tmp_path, broken)
    text = str(error.value)
    for part in (
        "execution.hostname: the key 'hostname' is missing",
        "execution.gres: the key 'gres' is missing",
        "execution.num_nodes: expected a whole number, got ",
        "deployment.type: 'vlm' is not a kind of deployment; did you mean 'vllm'",
        "evaluation.task: evaluation has no such key; did you mean 'tasks'?",
        "evaluation.tasks.0.dataset: evaluation.tasks.0 has no such key",
        "evaluation.tasks.1: a task needs a name",
        "target.api_endpoint.url: the variable NOPE is not set",
        "exprt: there is no such section; did you mean 'export'",
    ):
        assert part in text
    added = yaml.safe_load(text.partition("your own values:\n")[2].partition("\nor give")[0])
    assert added["execution"]["gres"] == "gpu:8"
    assert "execution.gres=…" in text


def test_a_config_without_a_type_says_which_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"execution\.type: the key 'type' is missing"):
        made(tmp_path, {key: value for key, value in MINIMAL.items() if key != "execution"})


def test_tasks_are_chosen_by_name_and_by_number_in_the_order_of_the_config(tmp_path: Path) -> None:
    tasks = [{"name": name} for name in ("gsm8k", "mmlu", "gsm8k", "ifeval")]
    config = MINIMAL | {"evaluation": {"tasks": tasks}}

    def names(*wanted: str) -> list[str]:
        return [task.folder for task in made(tmp_path, config, tasks=wanted).tasks]

    assert names("ifeval", "gsm8k") == ["gsm8k.0", "gsm8k.1", "ifeval.2"]
    assert names("gsm8k.2") == names("gsm8k.0") == ["gsm8k.0"]
    assert names("gsm8k.2", "mmlu") == ["mmlu.0", "gsm8k.1"]
    with pytest.raises(
        UnknownNameError, match=r"did you mean 'ifeval'\? The config has: gsm8k, mmlu, ifeval, gsm8k.0"
    ):
        names("ifevl")
    with pytest.raises(UnknownNameError):
        names("gsm8k.1")


def test_an_unknown_task_is_told_before_all_else(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        made(tmp_path, MINIMAL | {"deployment": {"type": "???"}}, tasks=("nope",))


def test_the_file_wins_for_some_keys_of_the_place_and_lists_are_joined(tmp_path: Path) -> None:
    (tmp_path / "env.toml").write_text(ENV_TOML + "[big]\nextends='laptop'\nnodes=8\ntime='09:00:00'\n")
    env = {
        "nodes": 2,
        "time": "1",
        "mounts": ["/b:/b"],
        "env_vars": {"A": "0", "C": "0"},
        "container_image": "own:1",
    }
    made_of = made(tmp_path, MINIMAL | {"run": {"env": env}}, profile="big")
    assert made_of.profile is not None
    assert (made_of.profile.nodes, made_of.profile.time) == (2, "09:00:00")
    assert made_of.profile.mounts == ("/b:/b", "/a:/a")
    assert made_of.profile.env_vars == {"A": "1", "B": "1", "C": "0"}
    assert made_of.profile.container_image == "own:1"
    assert made_of.run["profile"] == "big"


def test_overrides_come_after_the_profile_again(tmp_path: Path) -> None:
    (tmp_path / "env.toml").write_text(ENV_TOML)
    config = MINIMAL | {"execution": {**MINIMAL["execution"], "host": "${run.env.host}"}}
    assert made(tmp_path, config, "run.env.host=other", profile="laptop").config["execution"]["host"] == "other"


@pytest.mark.parametrize(
    ("profile", "what"),
    [
        ("cluster", r"execution\.type: profile \[cluster\] is a Slurm cluster, but the config says to run here"),
        ("bare", r"profile \[bare\] has executor docker, but no container_image"),
    ],
)
def test_profile_and_config_must_speak_of_one_place(tmp_path: Path, profile: str, what: str) -> None:
    (tmp_path / "env.toml").write_text(ENV_TOML + "[bare]\nexecutor='docker'\n")
    with pytest.raises(ConfigError, match=what):
        made(tmp_path, MINIMAL, profile=profile)


def test_a_misspelt_key_of_a_profile_is_told_where_nothing_uses_it(tmp_path: Path) -> None:
    (tmp_path / "env.toml").write_text("[here]\npartiton='x'\nmine='y'\nnode='z'\n")
    with pytest.raises(
        ConfigError, match=r"run\.env\.partiton: a profile has no such key; did you mean 'partition'"
    ):
        made(tmp_path, MINIMAL | {"x": {"y": "${run.env.node}"}}, profile="here")
    (tmp_path / "env.toml").write_text("[here]\nmine='y'\nnode='z'\n")
    assert made(tmp_path, MINIMAL | {"zz": {"y": "${run.env.node}"}}, profile="here").config["zz"] == {"y": "z"}


def test_defaults_are_composed_from_the_folder_of_the_config_too(tmp_path: Path) -> None:
    (tmp_path / "deployment").mkdir()
    (tmp_path / "deployment/mine.yaml").write_text(
        "defaults: [generic, _self_]\nimage: own:1\ncommand: serve\nport: 9\n"
    )
    (tmp_path / "more.yaml").write_text("# @package _global_\nexecution: {walltime: 10:00:00}\n")
    config = {
        "defaults": [{"execution": "local"}, {"deployment": "mine"}, {"optional nothing": "there"}, "more"],
        "deployment": {"served_model_name": "m"},
        "evaluation": MINIMAL["evaluation"],
    }
    found = made(tmp_path, config)
    assert (found.deployment.type, found.deployment.image, found.deployment.port) == ("generic", "own:1", 9)
    assert found.deployment.health == "/health"
    assert found.config["execution"]["walltime"] == "10:00:00"
    assert (
        made(tmp_path, config, "deployment=none", "target.api_endpoint={url: u, model_id: m}").deployment.image
        is None
    )


@pytest.mark.parametrize(
    ("defaults", "what"),
    [
        (
            [{"deployment": "vlm"}],
            "the defaults name 'deployment: vlm', which is in none of the folders; did you mean 'vllm'",
        ),
        (["config"], "include it again"),
        ([{"deployment": "${x}"}], "before any"),
        ([{"a": 1}], "cannot read the item"),
        ([["a"]], "cannot read the item"),
        ("vllm", "defaults: expected a list"),
    ],
)
def test_defaults_that_cannot_be_composed_are_told(
    tmp_path: Path, defaults: str | list[str | list[str] | dict[str, Any]], what: str
) -> None:
    with pytest.raises(ConfigError, match=what.replace("$", r"\$").replace("{", r"\{").replace("[", r"\[")):
        made(tmp_path, MINIMAL | {"defaults": defaults})


def test_configs_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "evaluate_configs").mkdir()
    shutil.copy(CONFIGS / "values.yaml", tmp_path / "evaluate_configs/mine.yml")
    shutil.copytree(CONFIGS / "extra", tmp_path / "evaluate_configs/extra")
    assert compiled(tmp_path, "mine").config.source.endswith("evaluate_configs/mine.yml")
    (tmp_path / "env.toml").write_text('[cli]\nconfig_dir = "evaluate_configs"\n')
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    assert compiled(inner, "mine").config.source.endswith("evaluate_configs/mine.yml")
    with pytest.raises(DataError, match="did you mean 'mine'"):
        compiled(inner, "min")
    with pytest.raises(DataError, match=r"For example: ns evaluate -c ./my-evaluation.yaml"):
        compiled(inner, "./nope.yaml")


def test_texts_and_numbers_are_told_apart_as_omegaconf_does(tmp_path: Path) -> None:
    lines = "\n".join(f"  k{at}: {text}" for at, text in enumerate(WRITTEN))
    found = made(tmp_path, yaml.safe_dump(MINIMAL) + f"zz:\n{lines}\n").config["zz"]
    assert list(found.values()) == list(WRITTEN.values())


WRITTEN = {
    "10:00:00": "10:00:00",
    "2026-01-01": "2026-01-01",
    "1e-07": 1e-07,
    ".5": 0.5,
    "1.": 1.0,
    "-1E3": -1000.0,
    "12": 12,
    "'12'": "12",
    "1e": "1e",
    "1.2.3": "1.2.3",
    "a1e5": "a1e5",
    "~": None,
    "yes": True,
}


def test_the_seed_config_compiles_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "env.toml").write_text(ENV_TOML)
    found = compiled(tmp_path, "nemotron-3-nano-nemo-ray", "run.env.remote_job_dir=/r", profile="cluster").config
    assert [task.benchmark for task in found.tasks] == [
        "mmlu",
        "lm-eval:arc_challenge",
        "lm-eval:winogrande",
        "hellaswag",
        "openbookqa",
    ]
    assert found.deployment.image == "nvcr.io/x:1"
    assert found.execution.hostname == "login.example.org"
    assert found.execution.auto_export == ("wandb",)


GUIDE = """
execution: {type: slurm, hostname: "${run.env.host}", account: "${run.env.account}", num_nodes: 1, gres: gpu:8}
deployment: {type: generic, image: "${run.env.container}", checkpoint_path: /model, command: python serve.py}
evaluation: {tasks: [{name: adlr_mmlu}, {name: hellaswag}]}
"""


@pytest.mark.parametrize(
    "defaults", ["", "defaults: [{execution: slurm/default}, {deployment: generic}, _self_]\n"]
)
def test_the_guide_s_configs_are_previewed_with_what_is_open(tmp_path: Path, defaults: str) -> None:
    """As NVIDIA's Nemotron guide writes them (docs/nemo_runspec/evaluator.md): some keys are left to env.toml."""
    (tmp_path / "guide.yaml").write_text(defaults + GUIDE)
    (tmp_path / "env.toml").write_text(ENV_TOML + '[far]\nextends = "cluster"\nremote_job_dir = "/shared/me"\n')
    shown = compiled(tmp_path, str(tmp_path / "guide.yaml"), profile="far", dry_run=True)
    assert [line.partition(":")[0] for line in shown.open] == ["deployment.served_model_name"]
    assert shown.config.execution.output_dir == "/shared/me/evaluations"
    assert shown.config.execution.ntasks_per_node == 1
    without = compiled(tmp_path, str(tmp_path / "guide.yaml"), dry_run=True)
    assert {line.partition(":")[0] for line in without.open} >= {"execution.hostname", "execution.output_dir"}
    with pytest.raises(ConfigError, match=r"deployment\.served_model_name"):
        compiled(tmp_path, str(tmp_path / "guide.yaml"), profile="far")
