# SPDX-License-Identifier: Apache-2.0
"""verl's own configuration takes our overrides; its reward function and its rows are ours."""

from __future__ import annotations

import json
import os
import subprocess
import typing
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.train.tiny import with_tokenizer

from newskills.base.errors import GraderError
from newskills.base.records import Failure, Row
from newskills.train.pipelines import verl_reward
from newskills.train.pipelines.common import TrainerRun, Wandb
from newskills.train.pipelines.formats import PPO, examine_file
from newskills.train.pipelines.grading_pool import BROKEN, GradingPool
from newskills.train.pipelines.inside import main, to_verl
from newskills.train.pipelines.losses import ACTOR, Loss, verl_loss
from newskills.train.pipelines.verl import ASYNC_MODULE, REWARD, Verl, converter_words, quote_value
from newskills.train.pipelines.verl_saving import CALLBACK, EXPIRES

VARIABLE = "NEWSKILLS_VERL_PYTHON"
COMPOSE = Path(__file__).with_name("compose_verl.py")
RUN = TrainerRun(
    name="my run",
    model="/models/it's 7B",
    output_dir="/out put/a=b,c",
    nodes=2,
    gpus=4,
    limit=4 * 3600,
    wandb=Wandb(project="p", name="my run"),
)


ASYNC = "experimental/fully_async_policy/config/fully_async_ppo_trainer"


def composed(overrides: list[str], config: str = "trainer/config/ppo_trainer") -> dict[str, Any]:
    """Skips where no interpreter with verl is named; CI names one."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"{VARIABLE} names no Python with verl and hydra-core (pip install --no-deps verl)")
    done = subprocess.run([python, str(COMPOSE), config, *overrides], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_trainer_composes_with_our_overrides() -> None:
    training = Verl(run=RUN, prompt_data="/d/x.jsonl", eval_data="/d/y.jsonl", graded=True)
    own = ["++algorithm.adv_estimator=grpo", "++actor_rollout_ref.rollout.n=8"]
    config = composed([*training.overrides(), *own])
    assert config["actor_rollout_ref"]["model"]["path"] == config["critic"]["model"]["path"] == "/models/it's 7B"
    assert config["trainer"]["default_local_dir"] == "/out put/a=b,c/checkpoints"
    assert (config["trainer"]["nnodes"], config["trainer"]["n_gpus_per_node"]) == (2, 4)
    assert (config["trainer"]["experiment_name"], config["trainer"]["project_name"]) == ("my run", "p")
    assert config["trainer"]["logger"] == ["console", "wandb"]
    assert (config["data"]["train_files"], config["data"]["val_files"]) == ("/d/x.jsonl", "/d/y.jsonl")
    assert config["reward"]["custom_reward_function"] == {"path": REWARD, "name": "compute_score"}
    assert config["algorithm"]["adv_estimator"] == "grpo"
    assert config["actor_rollout_ref"]["rollout"]["n"] == 8
    assert config["ray_kwargs"]["ray_init"]["runtime_env"]["env_vars"][EXPIRES] == "{deadline}"
    assert config["trainer"]["checkpoint_callback_class"] == CALLBACK
    assert config["actor_rollout_ref"]["rollout"]["tensor_model_parallel_size"] == 2


@pytest.mark.parametrize(("gpus", "samplers", "split"), [(1, None, 1), (3, None, 1), (8, None, 2), (8, 1, 1)])
def test_gpus_that_do_not_go_by_pairs_hold_a_model_each(gpus: int, samplers: int | None, split: int) -> None:
    """verl divides the model that samples by two, so that a single GPU would have no replica at all."""
    training = Verl(
        run=replace(RUN, nodes=1, gpus=gpus),
        prompt_data="/d/x.jsonl",
        staleness=None if samplers is None else 0.1,
        samplers=samplers or 1,
    )
    word = f"actor_rollout_ref.rollout.tensor_model_parallel_size={split}"
    assert word in training.overrides()


@pytest.mark.parametrize("loss", typing.get_args(Loss))
def test_losses_by_name_compose(loss: str) -> None:
    training = Verl(run=RUN, prompt_data="/d/x.jsonl", loss=loss, entropy=0.01, lora_rank=16)
    config = composed(training.overrides())
    actor, model = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["model"]
    assert config["algorithm"]["adv_estimator"] == "grpo"
    assert config["actor_rollout_ref"]["rollout"]["n"] == 8
    assert actor["entropy_coeff"] == 0.01
    assert actor["policy_loss"]["loss_mode"] == (loss if loss in ("gspo", "cispo", "sapo") else "vanilla")
    assert (model["lora_rank"], model["lora_alpha"], model["target_modules"]) == (16, 32, "all-linear")
    assert config["actor_rollout_ref"]["rollout"]["load_format"] == "safetensors"
    if loss == "masked":
        corrected = config["algorithm"]["rollout_correction"]
        assert (corrected["rollout_is"], corrected["rollout_is_threshold"]) == ("token", "0.5_5.0")
        assert config["actor_rollout_ref"]["rollout"]["calculate_log_probs"] is True


def test_losses_are_those_that_verl_registers() -> None:
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"{VARIABLE} names no Python with verl")
    find = "import importlib.util as u; print(u.find_spec('verl').submodule_search_locations[0])"
    place = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    source = (Path(place) / "trainer/ppo/core_algos.py").read_text()
    for loss in ("gspo", "cispo", "sapo", "vanilla"):
        assert f'@register_policy_loss("{loss}")' in source
    for mode in {
        str(verl_loss(loss, 0).get(f"{ACTOR}.loss_agg_mode", "token-mean")) for loss in typing.get_args(Loss)
    }:
        assert f'"{mode}"' in source


def test_the_trainer_composes_with_megatron_and_its_own_reward() -> None:
    config = composed(Verl(run=RUN, prompt_data="/d/x.parquet", backend="megatron").overrides())
    assert config["actor_rollout_ref"]["actor"]["strategy"] == "megatron"
    assert config["reward"]["custom_reward_function"]["path"] is None
    assert config["trainer"]["test_freq"] == -1


def test_the_asynchronous_trainer_composes_with_tools() -> None:
    training = Verl(
        run=RUN, prompt_data="/d/x.jsonl", graded=True, tools="/d/my tools.py", staleness=0.3, samplers=3
    )
    assert training.words()[:3] == ["python", "-m", ASYNC_MODULE]
    config = composed(training.overrides(), ASYNC)
    assert config["async_training"]["staleness_threshold"] == 0.3
    assert (config["rollout"]["nnodes"], config["rollout"]["n_gpus_per_node"]) == (2, 3)
    assert config["trainer"]["n_gpus_per_node"] == 1
    assert config["actor_rollout_ref"]["hybrid_engine"] is False
    rollout = config["actor_rollout_ref"]["rollout"]
    assert rollout["multi_turn"]["enable"] is True
    assert rollout["multi_turn"]["function_tool_path"] == "/d/my tools.py"
    assert rollout["agent"]["default_agent_loop"] == "tool_agent"
    stateful = Verl(run=RUN, prompt_data="/d/x.jsonl", tools="/d/tools.yaml").overrides()
    assert any(word.startswith("actor_rollout_ref.rollout.multi_turn.tool_config_path=") for word in stateful)


def test_a_misspelt_key_is_refused_by_verl_itself() -> None:
    with pytest.raises(AssertionError, match=r"trainer\.n_nodes"):
        composed(["trainer.n_nodes=2"])


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=12))
def test_any_path_is_one_quoted_value(text: str) -> None:
    value = quote_value(text)
    assert value[0] == value[-1] == "'"
    plain, index = "", 1
    while index < len(value) - 1:
        run = len(value[index:]) - len(value[index:].lstrip("\\"))
        before_quote = value[index + run] == "'"
        plain += "\\" * (run // 2 if before_quote else run)
        index += run
        if run and before_quote and run % 2:
            plain, index = plain + "'", index + 1
        elif index < len(value) - 1 and not before_quote:
            plain, index = plain + value[index], index + 1
    assert plain == text


def test_paths_survive_hydra() -> None:
    paths = ["/a b/c", "it's", "a\\b", "a\\", "a\\'b", "x=y,z", "${not}"[1:], "'", '"q"', "ü/日"]
    config = composed([f"++paths.p{number}={quote_value(path)}" for number, path in enumerate(paths)])
    assert list(config["paths"].values()) == paths


def test_problems_become_rows_of_verl(tmp_path: Path) -> None:
    rows = [{"problem": f"{n} {{x}}?", "expected_answer": n, "task_name": "sums"} for n in range(3)]
    source, target, prompt = tmp_path / "in.jsonl", tmp_path / "data/out.jsonl", tmp_path / "prompt.txt"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    prompt.write_text("Solve {} in \\boxed{{}}.")
    assert to_verl(source, target, prompt) == 3
    made = [json.loads(line) for line in target.read_text().splitlines()]
    assert made[1] == {
        "data_source": "newskills",
        "prompt": [{"role": "user", "content": "Solve 1 {x}? in \\boxed{}."}],
        "ability": "sums",
        "reward_model": {"style": "rule", "ground_truth": "1"},
        "extra_info": {"index": 1, "problem": "1 {x}?"},
    }
    assert examine_file(target, PPO) == ("verl", 3, False, False)
    before = target.stat().st_mtime_ns
    assert to_verl(source, target, prompt) == 3
    assert target.stat().st_mtime_ns == before
    assert [path.name for path in target.parent.iterdir()] == ["out.jsonl"]


@pytest.mark.nightly
def test_the_data_set_of_verl_reads_the_rows(tmp_path: Path) -> None:
    """The class itself, with PyTorch and transformers of this environment."""
    python = os.environ.get(VARIABLE)
    torch = find_spec("torch")
    if not python or not torch or not torch.origin or not find_spec("transformers") or not find_spec("datasets"):
        pytest.skip(f"{VARIABLE} names no Python with verl, or torch, transformers or datasets are not here")
    source, target, prompt = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "prompt.txt"
    rows = [("a", "1"), ("b", 2)]
    source.write_text("".join(json.dumps({"problem": p, "expected_answer": e}) + "\n" for p, e in rows))
    prompt.write_text("{}")
    to_verl(source, target, prompt)
    (tmp_path / "tokenizer").mkdir()
    with_tokenizer(tmp_path / "tokenizer")
    places = [Path(torch.origin).parents[1], target, tmp_path / "tokenizer", tmp_path / "cache"]
    env = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, str(COMPOSE.with_name("read_verl.py")), *map(str, places)],
        capture_output=True,
        text=True,
        timeout=280,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr[done.stderr.rindex('{"rows"') :]) == {
        "rows": 2,
        "prompt": [{"role": "user", "content": "b"}],
        "data_source": "newskills",
        "ground_truth": "2",
        "index": 1,
    }


def test_a_deadline_is_filled_in_when_the_job_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["--deadline=60", f"--folder={tmp_path}/new", "--", "python", "-c", "print(1)", "{deadline}"])
    assert code == 0
    assert (tmp_path / "new").is_dir()
    assert capfd.readouterr().out == "1\n"


def test_rewards_are_verdicts_of_the_math_grader() -> None:
    def score(answer: str, truth: str = "1/2") -> dict[str, float]:
        return verl_reward.compute_score("newskills", answer, truth, {"index": 0, "problem": "?"})

    with ThreadPoolExecutor(4) as threads:
        right, wrong, none = threads.map(score, ["It is \\boxed{0.5}.", "\\boxed{3}", "no idea"])
    assert right == {"score": 1.0, "acc": 1.0, "no_answer": 0.0, "unscored": 0.0}
    assert (wrong["score"], wrong["no_answer"]) == (0.0, 0.0)
    assert (none["score"], none["no_answer"]) == (0.0, 1.0)
    hostile = score("\\boxed{" + "9^" * 500 + "9}")
    assert hostile["score"] == 0.0
    assert hostile["unscored"] + hostile["no_answer"] <= 1.0


def test_a_grader_that_is_broken_stops_the_training_and_one_bad_answer_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def submit(self, row: Row) -> Broken:
            return self

        def result(self) -> Failure:
            return Failure(kind="crash", cause="grader", message="it crashed")

    verdicts = GradingPool()
    verdicts._pool = Broken()  # type: ignore[assignment]
    monkeypatch.setattr(verl_reward, "_VERDICTS", verdicts)
    for _ in range(BROKEN - 1):
        assert verl_reward.compute_score("newskills", "\\boxed{1}", "1")["unscored"] == 1.0
    with pytest.raises(GraderError, match="it crashed"):
        verl_reward.compute_score("newskills", "\\boxed{1}", "1")


def test_the_merger_gets_the_arguments_that_it_has() -> None:
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"{VARIABLE} names no Python with verl")
    words = list(converter_words("fsdp"))
    found = subprocess.run(
        [python, "-c", "import importlib.util as u; print(u.find_spec('verl').submodule_search_locations[0])"],
        capture_output=True,
        text=True,
        check=True,
    )
    known = (Path(found.stdout.strip()) / "model_merger/base_model_merger.py").read_text()
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert options == ["--backend", "--local_dir", "--target_dir"]
    assert all(f'"{option}"' in known for option in options)
