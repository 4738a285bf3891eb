# SPDX-License-Identifier: Apache-2.0
"""What is written for NeMo-RL: keys that it knows, with the values of the recipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import newskills
from newskills.base.errors import ConfigError
from newskills.run.grade import grade_rows
from newskills.train.pipelines.common import TrainerRun, Wandb, format_clock, step_range, steps_of
from newskills.train.pipelines.grading_pool import GradingPool, answer_record, found_answer, verdict_text
from newskills.train.pipelines.nemo_rl import FOREVER, NemoRl, converter_words, merge_configs

KNOWN = Path(__file__).with_name("nemo_rl_keys.txt")
WANDB = Wandb(project="p", name="tune", group="g")
RUN = TrainerRun(name="tune", model="/models/m", output_dir="/out", nodes=2, gpus=8, limit=4 * 3600, wandb=WANDB)


def known_keys() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            section, _, keys = line.partition(": ")
            found[section] |= set(keys.split())
    found[""] = {section.partition(".")[0] for section in found} | {"defaults"}
    return found


def unknown(config: object, known: dict[str, set[str]], at: str = "") -> list[str]:
    """Dotted keys of `config` that are in none of the sections."""
    if isinstance(config, list):
        return [key for item in config for key in unknown(item, known, at)]
    if not isinstance(config, dict):
        return []
    bad = []
    for key, value in config.items():
        path = f"{at}.{key}" if at else key
        bad += [] if key in known[at] else [path]
        bad += unknown(value, known, path)
    return bad


def made_words(algorithm: str, form: str, **more: object) -> list[str]:
    return NemoRl(
        run=RUN, algorithm=algorithm, backend="fsdp", form=form, training_data="/d/train.jsonl", **more
    ).words()


def made(algorithm: str, form: str, backend: str = "fsdp", **more: object) -> dict[str, Any]:
    return NemoRl(
        run=RUN, algorithm=algorithm, backend=backend, form=form, training_data="/d/train.jsonl", **more
    ).config()


EVERY = list(
    product(
        [("sft", "input_output"), ("sft", "messages"), ("grpo", "plain"), ("gym", "gym")],
        ["fsdp", "megatron"],
        [None, "/d/test.jsonl"],
        [False, True],
    )
)


@pytest.mark.parametrize(("kind", "backend", "validation", "tools"), EVERY)
def test_every_key_is_one_that_nemo_rl_knows(
    kind: tuple[str, str], backend: str, validation: Any, tools: bool
) -> None:
    config = made(kind[0], kind[1], backend, validation_data=validation, tools=tools and kind[1] == "messages")
    assert unknown(config, known_keys()) == []
    assert config["policy"]["dtensor_cfg"]["enabled"] == (backend == "fsdp")
    assert config["policy"]["megatron_cfg"]["enabled"] == (backend == "megatron")
    assert (config["policy"].get("optimizer", 0) is None) == (backend == "megatron")
    assert (config["data"]["validation"] is None) == (validation is None)


@pytest.mark.parametrize("loss", ["grpo", "dapo", "gspo", "cispo", "masked"])
def test_losses_by_name_and_pairs(loss: str) -> None:
    config = made("grpo", "plain", loss=loss, lora_rank=8)
    assert unknown(config, known_keys()) == []
    assert config["loss_fn"]["use_cispo" if loss == "cispo" else "token_level_loss"] == (
        loss not in ("grpo", "gspo")
    )
    assert config["loss_fn"].get("sequence_level_importance_ratios", False) == (loss == "gspo")
    assert config["policy"]["dtensor_cfg"]["lora_cfg"] == {"enabled": True, "dim": 8, "alpha": 16}


@pytest.mark.parametrize(
    ("more", "said"), [({"loss": "sapo"}, "has no loss sapo"), ({"entropy": 0.1}, "no entropy bonus")]
)
def test_losses_that_it_lacks_are_named(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        made("grpo", "plain", **more)


def test_a_key_that_it_does_not_know_is_found() -> None:
    assert unknown({"sft": {"max_epochs": 1}, "policy": {"scheduler": [{"nam": 1}]}}, known_keys()) == [
        "sft.max_epochs",
        "policy.scheduler.nam",
    ]


def test_supervised_fine_tuning_has_the_defaults_of_the_contract() -> None:
    config = made("sft", "input_output")
    assert config["defaults"] == "/opt/nemo-rl/examples/configs/sft.yaml"
    sft, saving, policy, data = (config[name] for name in ("sft", "checkpointing", "policy", "data"))
    assert (sft["max_num_epochs"], sft["max_num_steps"]) == (FOREVER, FOREVER) == (10**8, 10**8)
    assert (sft["val_period"], sft["val_at_start"]) == (0, False)
    assert (saving["keep_top_k"], saving["save_period"]) == (50, 100)
    assert saving["checkpoint_must_save_by"] == "00:03:45:00"
    assert saving["checkpoint_dir"] == "/out/checkpoints"
    assert policy["max_total_sequence_length"] == 4096
    assert policy["sequence_packing"]["enabled"] is True
    assert policy["tokenizer"] == {"chat_template": None, "name": "/models/m"}
    assert policy["optimizer"]["kwargs"] == {"lr": 1e-6, "weight_decay": 0.01, "eps": 1e-8}
    assert (data["add_bos"], data["add_eos"], data["add_generation_prompt"], data["num_workers"]) == (
        False,
        False,
        False,
        10,
    )
    assert config["logger"]["wandb"] == {"project": "p", "name": "tune", "id": "tune-g-p", "group": "g"}
    assert config["cluster"] == {"gpus_per_node": 8, "num_nodes": 2}
    megatron = made("sft", "messages", "megatron")["policy"]
    assert megatron["max_grad_norm"] == 0.0
    assert megatron["megatron_cfg"]["optimizer"] == {
        "lr": 1e-6,
        "min_lr": 1e-6,
        "weight_decay": 0.01,
        "adam_eps": 1e-8,
    }
    assert megatron["megatron_cfg"]["scheduler"]["lr_decay_style"] == "constant"
    assert megatron["tokenizer"]["chat_template"] == "default"


def falling(policy: dict[str, Any], steps: int) -> list[float]:
    """The learning rate of each step, as NeMo-RL's worker makes its schedule (its `SequentialLR` of the list)."""
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], **policy["optimizer"]["kwargs"])
    parts = [part for part in policy["scheduler"] if "name" in part]
    made = [
        getattr(torch.optim.lr_scheduler, part["name"].rpartition(".")[2])(optimizer, **part["kwargs"])
        for part in parts
    ]
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, made, policy["scheduler"][-1]["milestones"])
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return [*rates, optimizer.param_groups[0]["lr"]]


def test_the_learning_rate_falls_to_its_end_over_the_steps_that_there_are() -> None:
    rates = falling(made("sft", "messages", steps=50, rate=5e-6)["policy"], 50)
    assert rates[0] == pytest.approx(5e-6)
    assert rates[25] == pytest.approx(3e-6)
    assert rates[-1] == pytest.approx(1e-6)
    assert rates == sorted(rates, reverse=True)
    assert falling(made("sft", "messages", steps=4, rate=1e-7)["policy"], 4)[-1] == pytest.approx(1e-7)
    assert "scheduler" not in made("sft", "messages")["policy"]
    schedule = made("sft", "messages", "megatron", steps=50)["policy"]["megatron_cfg"]["scheduler"]
    assert (schedule["lr_decay_style"], schedule["lr_decay_iters"]) == ("cosine", 50)


def test_reinforcement_has_the_recipe_of_the_contract() -> None:
    config = made("grpo", "plain", validation_data="/d/test.jsonl")
    grpo, loss = config["grpo"], config["loss_fn"]
    assert (grpo["num_prompts_per_step"], grpo["num_generations_per_prompt"]) == (32, 16)
    assert (grpo["max_num_epochs"], grpo["max_num_steps"], grpo["max_rollout_turns"]) == (1, 10**6, 1)
    assert (loss["reference_policy_kl_penalty"], loss["reference_policy_kl_type"]) == (0.01, "k3")
    assert (loss["kl_input_clamp_value"], loss["kl_output_clamp_value"]) == (20.0, 10.0)
    assert config["policy"]["train_global_batch_size"] == 512
    assert config["data"]["train"]["input_key"] == "problem"
    assert config["data"]["train"]["output_key"] == "expected_answer"
    assert config["data"]["default"]["env_name"] == "newskills"
    assert config["env"] == {"newskills": {"num_workers": 8, "eval_type": "math", "eval_config": {}}}
    assert config["policy"]["max_total_sequence_length"] == 4096
    assert made("grpo", "plain", length=2048)["policy"]["max_total_sequence_length"] == 2048


HERE = Path(__file__).parent


def seen_by_nemo_rl(
    root: str, algorithm: str, path: Path, overrides: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """A configuration as NeMo-RL's own loader composes it, and its keys that NeMo-RL's schema does not know."""
    hydra = os.environ.get("NEWSKILLS_VERL_PYTHON")
    if not hydra:
        pytest.skip("NEWSKILLS_VERL_PYTHON names no Python with hydra-core")
    argv = [hydra, str(HERE / "compose_nemo_rl.py"), root, str(path), *overrides]
    composed = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert composed.returncode == 0, composed.stderr
    argv = [sys.executable, str(HERE / "nemo_rl_schema.py"), root, algorithm]
    checked = subprocess.run(argv, input=composed.stdout, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    return json.loads(composed.stdout), json.loads(checked.stdout)


PASSED_ON = (".logger.wandb.id", ".logger.wandb.group", ".data.train.chat_key", ".data.validation.chat_key")
"""Arguments of wandb.init and of OpenAIFormatDataset, which its schema does not name."""


@pytest.mark.parametrize(
    ("algorithm", "form", "backend"),
    [
        ("sft", "input_output", "fsdp"),
        ("sft", "messages", "megatron"),
        ("grpo", "plain", "fsdp"),
        ("grpo", "plain", "megatron"),
        ("gym", "gym", "megatron"),
    ],
)
def test_nemo_rls_loader_and_schema_take_it(tmp_path: Path, algorithm: str, form: str, backend: str) -> None:
    """Where a checkout of NeMo-RL is named: nothing in our file is wrong or unknown that is not so in its own."""
    root = os.environ.get("NEWSKILLS_NEMO_RL_PATH")
    if not root:
        pytest.skip("NEWSKILLS_NEMO_RL_PATH names no checkout of NeMo-RL")
    more = {"loss": "masked", "lora_rank": 8 if backend == "fsdp" else None} if algorithm == "grpo" else {}
    written = made(algorithm, form, backend, root=root, validation_data="/d/test.jsonl", steps=50, **more)
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(written))
    schema = "sft" if algorithm == "sft" else "grpo"
    composed, beyond = seen_by_nemo_rl(root, schema, path, ["++policy.train_global_batch_size=64"])
    _, theirs = seen_by_nemo_rl(root, schema, Path(written["defaults"]), [])
    assert set(beyond) <= {*theirs, *PASSED_ON}
    assert composed["policy"]["train_global_batch_size"] == 64
    assert composed["data"]["train"]["data_path"] == "/d/train.jsonl"
    assert composed["checkpointing"]["checkpoint_must_save_by"] == "00:03:45:00"
    misspelt = tmp_path / "misspelt.yaml"
    misspelt.write_text(json.dumps(merge_configs(written, {"policy": {"max_sequence_length": 1}})))
    assert ".policy.max_sequence_length" in seen_by_nemo_rl(root, schema, misspelt, [])[1]


CASES = [
    ("I think 7 or 4", "4"),
    ("\\boxed{3} no wait \\boxed{4}", "4"),
    ("\\boxed{4}", "4"),
    ("\\boxed{5}", "4"),
    ("It is \\boxed{0.5}.", "\\frac{1}{2}"),
    ("\\boxed{(1, 2]}", "(1, 2]"),
    ("", "4"),
    ("\\boxed{" + "9^" * 500 + "9}", "4"),
]


def test_our_grader_is_the_reward_through_nemo_rls_own_environments() -> None:
    """Where a Python with Ray and NeMo-RL is named: its registry makes the actor, its rollouts ask it."""
    python = os.environ.get("NEWSKILLS_NEMO_RL_PYTHON")
    if not python:
        pytest.skip("NEWSKILLS_NEMO_RL_PYTHON names no Python with ray and nemo_rl")
    source = Path(newskills.__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("NEWSKILLS_NEMO_RL_PATH")]))
    done = subprocess.run(
        [python, str(Path(__file__).with_name("nemo_rl_env.py"))],
        input=json.dumps(CASES),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    graded = grade_rows(
        [answer_record([{"role": "assistant", "content": a}], {"ground_truth": b}) for a, b in CASES], "math", {}
    )
    outcomes = [row["outcome"] for row in graded]
    assert found["ours"] == [float(outcome == "correct") for outcome in outcomes]
    assert found["told"] == [f"Environment: {outcome}" for outcome in outcomes]
    assert all(found["ended"])
    assert found["metrics"]["unscored"] == outcomes.count("unscored") / len(CASES)
    assert found["theirs"] != found["ours"]


def test_the_reward_is_the_verdict_of_an_evaluation() -> None:
    """Without NeMo-RL: what its environment does with each answer."""
    records = [
        answer_record([{"role": "user", "content": "4"}, {"role": "assistant", "content": a}], {"ground_truth": b})
        for a, b in CASES
    ]
    verdicts = GradingPool()
    try:
        scores = verdicts.scores(records)
    finally:
        verdicts.close()
    graded = grade_rows([dict(row) for row in records], "math", {})
    assert [verdict_text(score).removeprefix("Environment: ") for score in scores] == [
        row["outcome"] for row in graded
    ]
    assert [found_answer(score) for score in scores[:3]] == [None, "4", "4"]


def test_nemo_rls_program_is_run_with_our_environment(tmp_path: Path) -> None:
    """A stand-in for NeMo-RL with the registry that is asked: the program sees its own words, and our name there."""
    package = tmp_path / "nemo_rl"
    for name, text in (
        ("distributed/ray_actor_environment_registry", "ACTOR_ENVIRONMENT_REGISTRY = {}"),
        ("distributed/virtual_cluster", "class PY_EXECUTABLES:\n    SYSTEM = 'this python'"),
        ("environments/utils", "NAMES = {}\nregister_env = NAMES.__setitem__"),
    ):
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    (package / "__init__.py").touch()
    (tmp_path / "run_grpo.py").write_text(
        "import sys\nfrom nemo_rl.environments.utils import NAMES\n"
        "from nemo_rl.distributed.ray_actor_environment_registry import ACTOR_ENVIRONMENT_REGISTRY as PYTHONS\n"
        "print(__name__, sys.argv[1:], NAMES['newskills'], PYTHONS[NAMES['newskills']])\n"
    )
    words = made_words("grpo", "plain", root=str(tmp_path))
    assert words == [
        "python",
        "-m",
        "newskills.train.pipelines.nemo_rl_program",
        f"{tmp_path}/examples/run_grpo.py",
        "--config",
    ]
    source = Path(newskills.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, *words[1:3], str(tmp_path / "run_grpo.py"), "--config", "x.yaml", "++a=1"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    actor = "newskills.train.pipelines.nemo_rl_env.Environment"
    assert done.stdout.strip() == f"__main__ ['--config', 'x.yaml', '++a=1'] {actor} this python"


def test_gym_changes_nothing_of_its_own_recipe() -> None:
    config = made("gym", "gym", "megatron", root="/own", validation_data="/d/v")
    assert config["defaults"] == "/own/examples/nemo_gym/grpo_nanov3.yaml"
    assert "grpo" not in config
    assert config["data"] == {"train": {"data_path": "/d/train.jsonl"}, "validation": {"data_path": "/d/v"}}


def test_another_parent() -> None:
    assert made("sft", "messages", parent="/mine.yaml")["defaults"] == "/mine.yaml"


@pytest.mark.parametrize(
    ("limit", "by"), [(4 * 3600, 4 * 3600 - 900), (3600, 2700), (600, 450), (86400 * 2, 86400 * 2 - 900)]
)
def test_the_last_checkpoint_is_saved_before_the_limit(limit: int, by: int) -> None:
    run = TrainerRun(name="n", model="m", output_dir="/o", limit=limit)
    assert run.save_by == by


def test_times_steps_and_ranges() -> None:
    assert format_clock(2 * 86400 + 3 * 3600 + 4 * 60 + 5) == "02:03:04:05"
    assert steps_of(" 100, 200,100", "--x") == [100, 200]
    assert steps_of(None, "--x") == []
    assert step_range("3:5") == "3:5"
    for bad in ("0:5", "5:5", "5", "a:b", "5:3", "-1:3", "3:5:7"):
        with pytest.raises(ConfigError, match="expected A:B"):
            step_range(bad)
    for bad in ("1;2", "one", "1,-2", "1.5"):
        with pytest.raises(ConfigError, match="expected step numbers"):
            steps_of(bad, "--average_steps")


def test_names_that_weights_and_biases_refuses() -> None:
    with pytest.raises(ConfigError, match="128 characters"):
        Wandb(project="p" * 40, name="n" * 40).check()
    with pytest.raises(ConfigError, match="cannot be part of a project name"):
        Wandb(project="a/b", name="n").check()
    Wandb(project="p", name="n").check()


def test_converters() -> None:
    assert converter_words("fsdp", "/r")[1:] == [
        "/r/examples/converters/convert_dcp_to_hf.py",
        "--config",
        "{checkpoint}/config.yaml",
        "--dcp-ckpt-path",
        "{checkpoint}/policy/weights",
        "--hf-ckpt-path",
        "{target}",
    ]
    assert "{checkpoint}/policy/weights/iter_0000000" in converter_words("megatron", "/r")


def test_merging_lays_over() -> None:
    assert merge_configs({"a": {"b": 1, "c": 2}}, {"a": {"b": None}, "d": []}) == {
        "a": {"b": None, "c": 2},
        "d": [],
    }
