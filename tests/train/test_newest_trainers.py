# SPDX-License-Identifier: Apache-2.0
"""At night: the newest trainers that pip has still take what we tell them. Their sources are read, not imported.

A flag or key that is gone is found here before a user finds it. `NEWSKILLS_NEWEST` names a folder with their wheels,
where there is no network.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import typing
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from newskills.train.backends.trl.launching import NodePlace, accelerate_config
from newskills.train.backends.trl.settings import TrlLoss, TrlSettings
from newskills.train.memory import TILE_TOKENS, TILE_VOCAB
from newskills.train.pipelines.common import TrainerRun
from newskills.train.pipelines.losses import Loss
from newskills.train.pipelines.verl import ASYNC_MODULE, MODULE, Verl

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Package:
    """The files of a wheel."""

    name: str
    folder: Path

    def text(self, path: str) -> str:
        return (self.folder / path).read_text(encoding="utf-8")

    def tree(self, path: str) -> ast.Module:
        return ast.parse(self.text(path))

    def fields(self, path: str, of: str) -> set[str]:
        """Return the annotated names of a class."""
        [found] = [node for node in self.tree(path).body if isinstance(node, ast.ClassDef) and node.name == of]
        return {
            node.target.id
            for node in found.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Package]:
    place = tmp_path_factory.mktemp("newest")
    got: dict[str, Package] = {}

    def get(name: str) -> Package:
        if name not in got:
            folder = place / name
            folder.mkdir()
            offline = os.environ.get("NEWSKILLS_NEWEST")
            where = ["--no-index", f"--find-links={offline}"] if offline else []
            argv = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", *where]
            done = subprocess.run([*argv, "-d", str(folder), name], capture_output=True, text=True, check=False)
            wheels = list(folder.glob("*.whl"))
            if not wheels:
                pytest.skip(f"pip cannot get {name} here: {done.stderr.strip().splitlines()[-1:]}")
            with zipfile.ZipFile(wheels[0]) as wheel:
                wheel.extractall(folder)
            got[name] = Package(name, folder)
        return got[name]

    return get


def keywords_of(path: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the names of TRL's configurations that a file of ours makes, with the keywords that it writes down."""
    tree = ast.parse((ROOT / "src/newskills/train/backends/trl" / path).read_text())
    names = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "trl"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and names.get(node.func.id, "").endswith("Config")
        ):
            yield names[node.func.id], {word.arg for word in node.keywords if word.arg}


def dict_keys(path: str, function: str) -> set[str]:
    """Return the texts that are keys of dictionaries in a function of ours."""
    tree = ast.parse((ROOT / "src/newskills/train/backends/trl" / path).read_text())
    [found] = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    keys = [key for node in ast.walk(found) if isinstance(node, ast.Dict) for key in node.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


CONFIGS = {
    "sft.py": "trl/trainer/sft_config.py",
    "dpo.py": "trl/trainer/dpo_config.py",
    "kto.py": "trl/trainer/kto_config.py",
    "reward_model.py": "trl/trainer/reward_config.py",
}


@pytest.mark.parametrize("path", CONFIGS)
def test_configurations_of_trl(path: str, newest: Callable[[str], Package]) -> None:
    trl = newest("trl")
    for name, keywords in keywords_of(path):
        known = trl.fields(CONFIGS[path], name) | trl.fields("trl/trainer/base_config.py", "_BaseConfig")
        assert keywords - known - of_transformers(newest) == set(), name


def of_transformers(newest: Callable[[str], Package]) -> set[str]:
    return newest("transformers").fields("transformers/training_args.py", "TrainingArguments")


def test_arguments_of_transformers(newest: Callable[[str], Package]) -> None:
    assert dict_keys("model.py", "arguments") - of_transformers(newest) == set()


def test_reinforcement_of_trl(newest: Callable[[str], Package]) -> None:
    trl = newest("trl")
    known = trl.fields("trl/trainer/grpo_config.py", "GRPOConfig") | of_transformers(newest)
    ours = (
        dict_keys("grpo.py", "_how")
        | dict_keys("grpo.py", "_only_grpo")
        | dict_keys("losses.py", "loss_arguments")
    )
    ours |= dict_keys("rollouts.py", "loss_settings") | {"entropy_coef", "router_aux_loss_coef"}
    assert ours - known == set()
    text = trl.text("trl/trainer/grpo_config.py")
    for loss in set(typing.get_args(TrlLoss)) - {"token_mean", "gspo", "masked"}:
        assert f'"{loss}"' in text or f"'{loss}'" in text, loss
    assert "token_mask" in text


def test_tiles_of_trls_head(newest: Callable[[str], Package]) -> None:
    """What the estimate of memory counts."""
    trl = newest("trl")
    assert f"TOKEN_CHUNK_SIZE = {TILE_TOKENS}" in trl.text("trl/kernels/chunked_logprob.py")
    assert f"_CHUNKED_LOGPROB_CHUNK_SIZE = {TILE_VOCAB}" in trl.text("trl/trainer/utils.py")


@pytest.mark.parametrize("split", ["none", "zero1", "zero2", "fsdp"])
def test_files_for_accelerate(split: Any, newest: Callable[[str], Package]) -> None:
    accelerate = newest("accelerate")
    config = accelerate_config(TrlSettings(processes=2, split=split), NodePlace())
    fields = accelerate.fields("accelerate/commands/config/config_args.py", "BaseConfig")
    fields |= accelerate.fields("accelerate/commands/config/config_args.py", "ClusterConfig")
    assert set(config) - fields == set()
    flags = accelerate.text("accelerate/commands/launch.py")
    for key in {**config.get("fsdp_config", {}), **config.get("deepspeed_config", {})}:
        assert f'"--{key}"' in flags, key
    assert '"--config_file"' in flags


def overrides_of(**more: Any) -> list[str]:
    run = TrainerRun(name="n", model="/m", output_dir="/o", gpus=8, limit=7200)
    return Verl(
        run=run, prompt_data="/d", graded=True, tools="/t.yaml", lora_rank=8, entropy=0.1, **more
    ).overrides()


def test_keys_of_verl(newest: Callable[[str], Package]) -> None:
    verl = newest("verl")
    config = yaml.safe_load(verl.text("verl/trainer/config/_generated_ppo_trainer.yaml"))
    lost = set()
    for loss in typing.get_args(Loss):
        for word in overrides_of(loss=loss):
            key = word.partition("=")[0]
            at: Any = config
            for part in key.lstrip("+").split("."):
                if not isinstance(at, dict) or part not in at:
                    lost |= set() if "env_vars" in key else {key}
                    break
                at = at[part]
    assert lost == set()


def test_programs_of_verl(newest: Callable[[str], Package]) -> None:
    verl = newest("verl")
    for module in (MODULE, ASYNC_MODULE, "verl.model_merger.__main__"):
        assert (verl.folder / f"{module.replace('.', '/')}.py").exists(), module
    loop = verl.text("verl/trainer/ppo/v1/trainer_base.py")
    for read in (
        "self.config.trainer.save_freq",
        "self.config.trainer.total_epochs",
        "build_checkpoint_callback(config)",
    ):
        assert read in loop
    assert "on_save(" in verl.text("verl/trainer/ppo/checkpoint_callback.py")


def test_functions_of_megatron_bridge(newest: Callable[[str], Package]) -> None:
    tree = newest("megatron-bridge").tree("megatron/bridge/models/conversion/auto_bridge.py")
    takes = {
        node.name: [word.arg for word in (*node.args.args, *node.args.kwonlyargs)]
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert takes["import_ckpt"][1:3] == ["hf_model_id", "megatron_path"]
    assert takes["export_ckpt"][1:5] == ["megatron_path", "hf_path", "show_progress", "strict"]


def test_functions_of_tinkers_client(newest: Callable[[str], Package]) -> None:
    """Those that `--backend=tinker` calls on what it gets from the package."""
    tinker = newest("tinker")
    ours = (ROOT / "src/newskills/train/backends/tinker/client.py").read_text()
    called = set(re.findall(r"self\._learner\(\)\.([a-z_]+)", ours)) | set(
        re.findall(r"service\.(create_[a-z_]+)", ours)
    )
    assert "save_weights_and_get_sampling_client" in called
    defined = {
        node.name
        for path in (tinker.folder / "tinker").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert called - defined == set()


def test_paths_of_tinkers_service(newest: Callable[[str], Package]) -> None:
    """Those without which a training is no training; `ns serve_tinker` answers them."""
    tinker = newest("tinker")
    text = "".join(path.read_text() for path in sorted((tinker.folder / "tinker/resources").rglob("*.py")))
    for path in ("create_model", "forward_backward", "optim_step", "asample", "save_weights", "load_weights"):
        assert f"/api/v1/{path}" in text, path
