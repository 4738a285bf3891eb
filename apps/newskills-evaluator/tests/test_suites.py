# SPDX-License-Identifier: Apache-2.0
"""Configurations of nemo-evaluator 0.3 and later: composed, read as the launcher's, and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills_evaluator.compile.compiler import CompileRequest, CompilerResult
from newskills_evaluator.suites.compiling import compile_all

ENVIRON = {"HOME": "/home/me", "USER": "me", "MY_KEY": "sk-hidden-0123", "PLACE": "/shared", "PORT": "9000"}
MODEL: Row = {
    "type": "api",
    "url": "http://localhost:${PORT:-8000}/v1/chat/completions",
    "protocol": "chat_completions",
    "model": "m",
    "api_key": "${MY_KEY}",
    "generation": {"temperature": 0.2, "max_tokens": 64},
}
SOLVER: Row = {"type": "simple", "service": "mine"}


def suite(*benchmarks: Row, **sections: object) -> Row:
    listed = [{"solver": SOLVER, **one} for one in benchmarks]
    return {"services": {"mine": MODEL}, "benchmarks": listed, **sections}


def made(folder: Path, content: Row, *, tasks: tuple[str, ...] = (), **overrides: str) -> list[CompilerResult]:
    (folder / "suite.yaml").write_text(yaml.safe_dump(content))
    asked = CompileRequest(
        config=str(folder / "suite.yaml"),
        tasks=tasks,
        overrides={key.replace("__", "."): text for key, text in overrides.items()},
    )
    return compile_all(asked, ENVIRON, folder)


def refused(folder: Path, content: Row) -> str:
    with pytest.raises(ConfigError) as error:
        made(folder, content)
    return str(error.value)


def test_benchmarks_are_read_with_their_service(tmp_path: Path) -> None:
    given = suite(
        {"name": "gsm8k", "max_problems": 5, "repeats": 4, "max_concurrent": 8},
        {"name": "skills://mmlu-pro", "solver": {**SOLVER, "generation": {"temperature": 0.7, "stop": ["END"]}}},
        {
            "name": "container://registry.invalid/nemo-skills:1#ns_ifeval",
            "params": {"limit_samples": 3, "top_p": 0.9},
        },
        output={"dir": "${PLACE}/results", "export": ["inspect", "wandb"]},
    )
    (one,) = made(tmp_path, given)
    first, second, third = one.config.tasks
    assert [task.benchmark for task in one.config.tasks] == ["gsm8k", "mmlu-pro", "ifeval"]
    assert one.config.target.url == "http://localhost:9000/v1/chat/completions"
    assert (one.config.target.model_id, one.config.target.api_key_name) == ("m", "MY_KEY")
    assert (one.config.execution.type, one.config.execution.output_dir) == ("local", "/shared/results")
    assert one.config.execution.auto_export == ("wandb",)
    assert (first.params.limit_samples, first.params.parallelism, first.params.temperature) == (5, 8, 0.2)
    assert first.params.extra["num_repeats"] == 4
    assert (second.params.temperature, second.params.max_new_tokens) == (0.7, 64)
    assert second.params.extra["args"] == """'++inference.stop=["END"]'"""
    assert (third.params.limit_samples, third.params.top_p) == (3, 0.9)
    assert any("export inspect" in note for note in one.notes)
    assert any("gsm8k: the first 5 problems are asked, where nel draws 5 with seed 42" in n for n in one.notes)
    assert "nemo-evaluator 0.3" in one.notes[0]
    assert "sk-hidden" not in str(one.config)


def test_a_benchmark_that_nel_takes_from_newskills_is_the_same_one(tmp_path: Path) -> None:
    given = suite({"name": "/anywhere/nel_environments.py:newskills.gsm8k"}, {"name": "newskills.ifeval"})
    (one,) = made(tmp_path, given)
    assert [task.benchmark for task in one.config.tasks] == ["gsm8k", "ifeval"]


def test_each_model_is_a_configuration_of_its_own(tmp_path: Path) -> None:
    given = suite({"name": "gsm8k"}, {"name": "mmlu", "solver": {"type": "simple", "service": "other"}})
    given["services"]["other"] = {
        **MODEL,
        "protocol": "completions",
        "url": "http://o/v1/completions",
        "model": "o",
    }
    first, second = made(tmp_path, given)
    assert [task.name for task in first.config.tasks] == ["gsm8k"]
    assert second.config.target.model_id == "o"
    assert second.config.tasks[0].endpoint_type == "completions"
    (only,) = made(tmp_path, given, tasks=("mmlu",), services__other__model="p")
    assert only.config.target.model_id == "p"


def test_a_judge_and_a_system_message_are_taken_along(tmp_path: Path) -> None:
    judge = {"type": "judge", "name": "correct", "service": "judge"}
    given = suite({"name": "simpleqa", "scoring": {"metrics": [judge]}})
    given["services"]["judge"] = {**MODEL, "model": "j"}
    message = {"name": "system_message", "config": {"system_message": "Be brief."}}
    given["services"]["mine"] = {**MODEL, "proxy": {"interceptors": [{"name": "turn_counter"}, message]}}
    (one,) = made(tmp_path, given)
    extra = one.config.tasks[0].params.extra
    assert extra["system_prompt"] == "Be brief."
    assert extra["judge"]["url"] == "http://localhost:9000/v1"
    assert (extra["judge"]["model_id"], extra["judge"]["api_key"]) == ("j", "MY_KEY")


def test_a_model_that_is_served_on_a_cluster(tmp_path: Path) -> None:
    given = suite({"name": "gsm8k"})
    given["services"]["mine"] = {
        "type": "vllm",
        "model": "org/model",
        "protocol": "chat_completions",
        "tensor_parallel_size": 4,
        "node_pool": "gpu",
        "extra_args": ["--max-num-seqs=8"],
        "extra_env": {"MODE": "fast"},
    }
    pools = {"cpu": {"partition": "c"}, "gpu": {"partition": "g", "nodes": 2, "gres": "gpu:4"}}
    cluster = {
        "type": "slurm",
        "walltime": "02:00:00",
        "node_pools": pools,
        "container_mounts": ["/a:/b"],
        "shards": 2,
    }
    (one,) = made(tmp_path, given | {"cluster": cluster})
    execution, deployment = one.config.execution, one.config.deployment
    assert (execution.type, execution.partition, execution.num_nodes, execution.gres) == ("slurm", "g", 2, "gpu:4")
    assert execution.deployment_mounts == {"/a": "/b"}
    assert (deployment.type, deployment.served_model_name, deployment.hf_model_handle) == (
        "vllm",
        "mine",
        "org/model",
    )
    assert deployment.tensor_parallel_size == 4
    assert "--max-num-seqs=8" in (deployment.command or "")
    assert any("cluster.shards" in note for note in one.notes)


def test_files_are_composed_as_nel_composes_them(tmp_path: Path) -> None:
    (tmp_path / "conf/clusters").mkdir(parents=True)
    base = suite({"name": "gsm8k"}, output={"dir": "there", "export": ["mlflow"]})
    base["_settings"] = {"partition": "short"}
    (tmp_path / "conf/clusters/far.yaml").write_text(
        "type: slurm\nnode_pools: {p: {partition: '${._settings.partition}', gres: 'gpu:1'}}\n"
    )
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    child = {"defaults": [{"_base_": "base.yaml"}, "clusters/far"], "output": {"export": None}}
    (one,) = made(tmp_path, child)
    assert one.config.execution.partition == "short"
    assert (one.config.execution.output_dir, one.config.execution.auto_export) == ("there", ())
    local = {"defaults": [{"_base_": "base.yaml"}, "clusters/local"]}
    assert made(tmp_path, local)[0].config.execution.type == "local"
    with pytest.raises(ConfigError, match="name 'clusters/near', which is not in"):
        made(tmp_path, {"defaults": ["clusters/near", {"_base_": "base.yaml"}]})
    with pytest.raises(ConfigError, match="include it again"):
        made(tmp_path, {"defaults": [{"_base_": "suite.yaml"}]})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"name": "gym://gsm8k"}, "benchmarks.0.name: 'gym://gsm8k': an environment behind HTTP"),
        ({"name": "gym://gsm8k"}, "newskills' own is 'gsm8k'"),
        ({"name": "gsm8kk"}, "did you mean 'gsm8k'"),
        (
            {"name": "gsm8k", "solver": {"type": "robot"}},
            "benchmarks.0.solver.type: newskills has no solver 'robot'",
        ),
        ({"name": "gsm8k", "solver": {**SOLVER, "service": "mien"}}, "no service 'mien'; did you mean 'mine'"),
        ({"playbook": "x"}, "benchmarks.0.playbook: playbooks are for agents"),
        ({"name": "gsm8k", "verifier": "mine"}, "benchmarks.0.verifier: "),
        ({"name": "gsm8k", "scoring": {"metrics": [{"type": "reward_model"}]}}, "no metric 'reward_model'"),
        (
            {"name": "gsm8k", "params": {"split": "${NOPE}"}},
            "benchmarks.0.params.split: the variable NOPE is not set",
        ),
    ],
)
def test_what_newskills_has_nothing_for_is_named_with_its_key(
    tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    text = refused(tmp_path, suite(change))
    assert what in text
    assert "the format of nemo-evaluator 0.3 and later" in text
    assert "nel eval run" in text


def test_a_key_that_is_written_out_is_refused(tmp_path: Path) -> None:
    given = suite({"name": "gsm8k"})
    given["services"]["mine"] = {**MODEL, "api_key": "sk-real-0123"}
    text = refused(tmp_path, given)
    assert "services.mine.api_key: keys are not written into files" in text
    assert "sk-real" not in text


def test_text_for_a_shell_of_the_node_stays(tmp_path: Path) -> None:
    given = suite({"name": "gsm8k", "solver": {**SOLVER, "system_prompt": "Say $${HOME}."}})
    assert made(tmp_path, given)[0].config.tasks[0].params.extra["system_prompt"] == "Say ${HOME}."


@pytest.mark.parametrize(("seed", "told"), [(7, True), (None, False)])
def test_problems_that_are_drawn_there_and_not_here_are_told(tmp_path: Path, seed: int | None, told: bool) -> None:
    (one,) = made(tmp_path, suite({"name": "gsm8k", "max_problems": 5, "shuffle_seed": seed}))
    assert any(f"nel draws 5 with seed {seed}" in note for note in one.notes) == told


def harbor(agent: str, **more: object) -> Row:
    return {"type": "harbor", "service": "mine", "agent": agent, **more}


@pytest.mark.parametrize(
    ("benchmark", "name", "words"),
    [
        (
            {
                "name": "harbor://swebench-verified@1.0",
                "solver": harbor("claude-code", agent_kwargs={"max_iterations": 100}, run_timeout=7200.0),
                "sandbox": {"type": "docker", "concurrency": 3},
            },
            "swe-bench",
            "++agent=claude-code ++agent_max_turns=100 ++agent_config.time_limit=7200 ++environment.engine=docker "
            "++environment.at_once=3",
        ),
        (
            {
                "name": "harbor://terminal-bench@2.0",
                "solver": harbor("terminus-2"),
                "sandbox": {"type": "ecs_fargate", "cpu": "4096", "memory": "8192", "ephemeral_storage_gib": 50},
            },
            "terminal-bench-2",
            "++agent=bash ++environment.memory_mb=8192 ++environment.disk_mb=51200 ++environment.cpus=4",
        ),
        (
            {
                "name": "swebench-multilingual",
                "solver": {
                    "type": "gym_delegation",
                    "service": "mine",
                    "gym_service": "g",
                    "gym_agent": "openhands",
                },
            },
            "swe-bench-multilingual",
            "++agent=openhands",
        ),
        (
            {
                "name": "swebench-verified",
                "solver": {"type": "tool_calling", "service": "mine", "sandbox_tools": True, "max_turns": 50},
                "sandbox": "ours",
            },
            "swe-bench",
            "++agent=bash ++agent_max_turns=50 ++environment.engine=apptainer",
        ),
        (
            {"name": "lm-eval://arc_easy", "fewshot": 3},
            "lm-eval:arc_easy",
            "++apply_chat_template=true ++num_fewshot=3",
        ),
        ({"name": "vlmevalkit://MMBench_DEV_EN"}, "mmbench", ""),
    ],
)
def test_agents_and_other_harnesses_are_what_newskills_has(
    benchmark: Row, name: str, words: str, tmp_path: Path
) -> None:
    given = suite(benchmark, sandboxes={"ours": {"type": "apptainer"}})
    given["services"]["g"] = {"type": "gym", "url": "http://gym:1"}
    (one,) = made(tmp_path, given)
    (task,) = one.config.tasks
    assert task.benchmark == name
    assert task.params.extra.get("args", "") == words


@pytest.mark.parametrize(
    ("solver", "what"),
    [
        (harbor("openclaw"), "solver.agent: newskills has no agent 'openclaw'"),
        (harbor("codex", skill="caveman"), "solver.skill: newskills does not know what this changes"),
        (harbor("codex", agent_kwargs={"depth": 1}), "solver.agent_kwargs.depth"),
        (
            {"type": "tool_calling", "service": "mine", "resource_service": "g", "sandbox_tools": True},
            "solver.resource_service: newskills has no tools of a Gym server",
        ),
    ],
)
def test_agents_that_newskills_lacks_are_refused_by_name(solver: Row, what: str, tmp_path: Path) -> None:
    assert what in refused(tmp_path, suite({"name": "swebench-verified", "solver": solver}))
