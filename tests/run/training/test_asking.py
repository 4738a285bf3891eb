# SPDX-License-Identifier: Apache-2.0
"""What a model is trained on is what an evaluation sends it, byte by byte."""

import json
from pathlib import Path
from typing import Any

import jinja2
import pytest
from tests import forkserver
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run
from tests.server import Answer, Script
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.run.rewarding.questions import QuestionFormat
from newskills.run.training.skill import Skill
from newskills.solve import SOLVERS

TEMPLATE = (
    "{% if tools %}[tools]{{ tools | tojson }}{% endif %}{% if loud %}LOUD{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "adds", "parameters": {"type": "object", "properties": {}}},
}
ROW = {"id": "7", "problem": "AB", "question": "AB", "expected_answer": "A"}
STEP = {"step_number": "1", "step_description_prompt": "d", "function_header": "def f():", "step_background": ""}
SAMPLED = {"inference": {"temperature": 0.7}, "solver_config": {"samples": 2}}
ASKED = {
    "chat": {},
    "code_execution": {"solver": "chat", "code_tags": "qwen", "code_execution": True},
    "sc_tir": {"code_tags": "qwen", "solver_config": {"candidates": 1}},
    "tools": {"tool_modules": ("python",)},
    "majority": SAMPLED,
    "weighted_vote": SAMPLED,
    "best_of_n": SAMPLED,
    "genselect": SAMPLED,
    "gensynthesis": SAMPLED,
    "turns": {"row": {"turns": ["AB", "BA"]}},
    "critpt": {"row": {"code_template": "def f(): ..."}},
    "function_calls": {"row": {"tools": [TOOL]}},
    "llm_judge": {"row": {"generation": "B", "predicted_answer": "B"}},
    "math_judge": {"row": {"generation": "B", "predicted_answer": "B"}},
    "ruled_judge": {"row": {"generation": "B", "predicted_answer": "B"}},
}
"""Solver → settings and fields of a row: the model is asked right away, in words that are in the row."""
LATER = {
    *("check_contamination", "claims_judge", "arena_judge", "turns_judge", "panel_judge", "scicode"),
    *("loglikelihood", "perplexity", "nemo_gym"),
    *(
        "comet_judge",
        "nvembed_judge",
        "step_judge",
        "own_judge",
        "tau2",
        "agentdojo",
        "agentharm",
        "agentharm_judge",
        "prover",
        "autoformalize",
    ),
    *("memory_calls", "conversation_calls", "software_agent", "transcription", "synthesis", "rubric_judge"),
    *("verifiers", "openenv", "lm_eval"),
}
"""Others ask about pairs, parts, sounds, or after somebody else has spoken: training refuses them."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=4096))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def read(body: Row, **variables: Any) -> str:
    """What a server with this template reads of a request."""
    text = jinja2.Environment(autoescape=False, trim_blocks=True, lstrip_blocks=True)
    text.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return text.from_string(TEMPLATE).render(
        messages=body["messages"], tools=body.get("tools"), add_generation_prompt=True, **variables
    )


def test_every_solver_is_known_here() -> None:
    assert set(ASKED) | LATER == set(SOLVERS.names())


@pytest.mark.parametrize("name", ASKED)
def test_training_reads_what_an_evaluation_sends(
    tmp_path: Path, fake_server: FakeServerFactory, model: Path, name: str
) -> None:
    server = fake_server(Script(answer=Answer(kind="text", text="A")))
    settings = dict(ASKED[name])
    row = {**ROW, **settings.pop("row", {})}
    (tmp_path / "input.jsonl").write_text(json.dumps(row) + "\n")
    prompt = {"system": "Be {{short}}.", "user": "Give {problem}{{}}"}
    unit = make_unit(
        tmp_path,
        server.base_url,
        **{"solver": name, "prompt_config": prompt, "chat_template_kwargs": {"loud": True}, **settings},
    )
    asking = QuestionFormat(unit.config)
    trained = Skill(model, asking).prompt_text(row)
    run(unit)
    sent = server.records[0].body
    assert trained == read(sent, **sent["chat_template_kwargs"])
    assert trained.startswith("LOUD") or sent["tools"]
    assert "Give AB{}" in trained
    if name == "chat":
        asking.check_one_reply("it")
    else:
        with pytest.raises(ConfigError, match="samples one reply"):
            asking.check_one_reply("it")


OWN_TRAINER = """class make:
    def __init__(self, base, settings): pass
    def runs(self, method): return True
    def run(self, method, data, folder, hooks=None): return True
    def finish(self, folder, target): pass
"""
MINE = """
from pathlib import Path
from newskills.base.benchmark import Benchmark

BENCHMARK = Benchmark(
    name="mine", category="reasoning", title="mine", folder=str(Path(__file__).parent / "rows"), grader="exact",
    defaults={"system_message": "Be brief.", "user_message": "Say {thing}", "chat_template_kwargs": {"loud": True}},
)
"""


def ns(place: Path, *words: str) -> tuple[int, str, str]:
    done = forkserver.ns(words, cwd=place)
    return done.returncode, done.stdout, done.stderr


def test_evaluation_sft_data_and_reinforcement_read_the_same(
    tmp_path: Path, fake_server: FakeServerFactory, model: Path
) -> None:
    """With a system message and a user message among the benchmark's own settings."""
    server = fake_server(Script(answer=Answer(kind="text", text="A")))
    (tmp_path / "rows").mkdir()
    (tmp_path / "mine.py").write_text(MINE)
    row = {"id": "1", "thing": "AB", "problem": "AB", "expected_answer": "A"}
    for split in ("train", "test"):
        (tmp_path / f"rows/{split}.jsonl").write_text(json.dumps(row) + "\n")
    asked = ["--server_type=vllm", f"--server_address={server.base_url}", "--model=fake", "--output_dir=out"]
    code, _, errors = ns(tmp_path, "eval", "--benchmarks=./mine.py", *asked)
    assert code == 0, errors
    sent = read(server.records[0].body, loud=True)
    assert sent == "LOUD<system>Be brief.<user>Say AB<assistant>"

    made = ["++tokenizer=model", "++output_path=sft.jsonl", "++filters.remove_contaminated=false"]
    made += ["++filters.remove_len_outlier_problems=false", "++add_incorrect=true", "--benchmark=./mine.py"]
    made.append("++preprocessed_dataset_files=out/eval-results/mine/output.jsonl")
    code, _, errors = ns(tmp_path, "prepare_training_data", *made)
    assert code == 0, errors
    assert [one["input"] for one in records(tmp_path / "sft.jsonl")] == [sent]

    words = [
        "grpo",
        "--model=model",
        "--benchmark=./mine.py",
        "--eval_benchmark=./mine.py",
        "--output_dir=trained",
        "--allow_overlap",
    ]
    small = ["++steps=1", "++group_size=2", "++max_tokens=1", "++eval.max_tokens=1", "++trainer.lora.rank=2"]
    code, said, errors = ns(tmp_path, *words, *small, "--dry_run")
    assert code == 0, errors
    assert "[system]\nBe brief.\n[user]\nSay AB\n" in said
    code, _, errors = ns(tmp_path, *words, *small, "++eval.every=1")
    assert code == 0, errors


def test_what_training_cannot_sample_is_refused_before_anything_is_read(tmp_path: Path, model: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace('grader="exact"', 'solver="turns"'))
    (tmp_path / "own.py").write_text(OWN_TRAINER)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/train.jsonl").write_text(json.dumps({"turns": ["AB"], "thing": "A"}) + "\n")
    words = ["grpo", "--model=model", "--dry_run", "--backend=own.py::make", "--benchmark=./mine.py"]
    code, _, errors = ns(tmp_path, *words, "--output_dir=out")
    assert code == 2
    assert "solver turns" in errors
    assert not (tmp_path / "out/metrics.jsonl").exists()
