# SPDX-License-Identifier: Apache-2.0
"""Text files as benchmarks: the figures of lm_eval's rolling log-likelihoods, by the same endpoint."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.commands.running import ns, rows_of
from tests.harness.endpoint import ScriptedEndpoint, ScriptedModel, make_tokenizer
from tests.harness.local_tasks import CANDIDATES

pytest.importorskip("transformers", reason="tokenizers need transformers")
TEXT = (
    "The quick brown fox jumps over the lazy dog. Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.\n" * 30
)


def run(folder: Path, name: str, *words: str) -> dict[str, float]:
    model = ScriptedModel(make_tokenizer(folder / "tokenizer"), CANDIDATES)
    with ScriptedEndpoint(model) as endpoint:
        done = ns(
            f"ns eval --server_type=generic --server_address={endpoint.url} --model=scripted --output_dir=out "
            f"--benchmarks=./{name} ++tokenizer={folder / 'tokenizer'}",
            *words,
            cwd=folder,
            env={"NEWSKILLS_DATA_DIR": str(folder / "data")},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (modes,) = json.loads((folder / "out/metrics.json").read_text()).values()
    return modes["pass@1"]


def test_a_text_file_has_bits_per_byte_and_perplexities(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(TEXT)
    numbers = run(tmp_path, "book.txt", "++solver_config.max_length=64")
    (row,) = rows_of(tmp_path / "out/eval-results/book/output.jsonl")
    nats = -row["loglikelihood"]
    assert row["num_bytes"] == len(TEXT.encode())
    assert (
        row["num_words"] == len(TEXT.split()) + 1
    )  # behind the last line break stands an empty one, as in lm_eval
    assert numbers["bits_per_byte"] == pytest.approx(nats / row["num_bytes"] / math.log(2))
    assert numbers["byte_perplexity"] == pytest.approx(math.exp(nats / row["num_bytes"]))
    assert numbers["word_perplexity"] == pytest.approx(math.exp(nats / row["num_words"]))


def test_documents_of_a_table_are_taken_together(tmp_path: Path) -> None:
    rows = [{"text": f"{TEXT[:200]} {number}"} for number in range(5)]
    (tmp_path / "pages.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    numbers = run(tmp_path, "pages.jsonl", "++kind=text")
    assert numbers["num_entries"] == 5
    assert numbers["bits_per_byte"] > 0
    extended = json.loads((tmp_path / "out/metrics_extended.json").read_text())
    number = extended["pages"]["numbers"]["pass@1"]["bits_per_byte"]
    assert number["low"] <= numbers["bits_per_byte"] <= number["high"]


@pytest.mark.nightly
def test_lm_eval_says_the_same(tmp_path: Path) -> None:
    lm_eval = pytest.importorskip("lm_eval", reason="no lm_eval here: pip install -e '.[lm-eval]'")
    from lm_eval.tasks import TaskManager

    (tmp_path / "pages.jsonl").write_text("".join(f"{json.dumps({'text': TEXT[n:] or 'x'})}\n" for n in range(4)))
    (tmp_path / "pages.yaml").write_text(
        f"task: pages\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {tmp_path}/pages.jsonl}}}}\n"
        "test_split: test\noutput_type: loglikelihood_rolling\ndoc_to_text: ''\ndoc_to_target: '{{text}}'\n"
        "should_decontaminate: false\nmetric_list:\n"
        + "".join(f"  - metric: {name}\n" for name in ("bits_per_byte", "byte_perplexity", "word_perplexity"))
    )
    model = ScriptedModel(make_tokenizer(tmp_path / "tokenizer"), CANDIDATES)
    with ScriptedEndpoint(model) as endpoint:
        theirs = lm_eval.simple_evaluate(
            model="local-completions",
            model_args={
                "model": "scripted",
                "tokenizer": str(tmp_path / "tokenizer"),
                "tokenizer_backend": "huggingface",
                "base_url": endpoint.url + "/completions",
                "max_length": 2048,
            },
            tasks=[str(tmp_path / "pages.yaml")],
            task_manager=TaskManager(include_path=str(tmp_path)),
            bootstrap_iters=2,
            log_samples=False,
        )["results"]["pages"]
    numbers = run(tmp_path, "pages.jsonl", "++kind=text")
    for name in ("bits_per_byte", "byte_perplexity", "word_perplexity"):
        assert numbers[name] == pytest.approx(theirs[f"{name},none"], rel=1e-12), name
