# SPDX-License-Identifier: Apache-2.0
"""Measures in this process: batches, and real (tiny, untrained) models of the kinds that are used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from newskills.base.aio import run
from newskills.base.errors import ConfigError, ModelError
from newskills.base.records import Request, Row
from newskills.models import make_model
from newskills.models.batches import BatchModel
from newskills.models.config import ServerConfig
from newskills.models.errors import ModelNotFoundError


def answers(model: Any, rows: list[Row]) -> list[Any]:
    async def main() -> list[Any]:
        try:
            asked = (model.complete(Request(prompt="", extra_body=row)) for row in rows)
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await model.close()

    return run(main)


def test_what_waits_is_one_batch() -> None:
    sizes: list[int] = []

    def work(rows: list[Row]) -> list[str]:
        sizes.append(len(rows))
        return [str(row["n"] * 2) for row in rows]

    found = answers(BatchModel("twice", work, size=4), [{"n": n} for n in range(10)])
    assert [reply.text for reply in found] == [str(2 * n) for n in range(10)]
    assert sizes == [4, 4, 2]


def test_a_bad_row_takes_no_other_with_it() -> None:
    def work(rows: list[Row]) -> list[str]:
        if any(row["n"] == 3 for row in rows):
            raise ValueError("three")
        return ["ok" for _ in rows]

    found = answers(BatchModel("picky", work, size=4), [{"n": n} for n in range(6)])
    assert [isinstance(one, ModelError) for one in found] == [n == 3 for n in range(6)]
    assert "three" in str(found[3])


def test_too_few_answers_are_a_failure() -> None:
    found = answers(BatchModel("short", lambda rows: ["ok"] * (len(rows) // 2), size=4), [{}, {}])
    assert all(isinstance(one, ModelError) and "0 answers for 1 rows" in str(one) for one in found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "library"), [("comet", "comet"), ("nvembed", "sentence_transformers")])
def test_without_its_library_it_names_the_extra(kind: str, library: str) -> None:
    try:
        __import__(library)
    except ImportError:
        with pytest.raises(ConfigError, match=r"pip install 'newskills\["):
            make_model(ServerConfig(server_type=kind, model="x"), concurrency=1, environ={})
    else:
        pytest.skip(f"{library} is installed")


WORDS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "dog",
    "sleeps",
    "runs",
    "die",
    "katze",
    "ein",
)


def tiny_bert(folder: Path) -> Path:
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_a_tiny_comet(tmp_path: Path) -> None:
    pytest.importorskip("comet", reason="needs newskills[comet]")
    import torch
    import yaml
    from comet.models import RegressionMetric

    encoder = tiny_bert(tmp_path / "bert")
    settings = {
        "encoder_model": "BERT",
        "pretrained_model": str(encoder),
        "pool": "avg",
        "layer": "mix",
        "hidden_sizes": [8, 4],
        "class_identifier": "regression_metric",
    }
    made = RegressionMetric(**{k: v for k, v in settings.items() if k != "class_identifier"})
    place = tmp_path / "comet" / "checkpoints"
    place.mkdir(parents=True)
    (tmp_path / "comet" / "hparams.yaml").write_text(
        yaml.safe_dump({**settings, "load_pretrained_weights": False})
    )
    torch.save(
        {"state_dict": made.state_dict(), "pytorch-lightning_version": "2.0.0", "hyper_parameters": settings},
        place / "model.ckpt",
    )
    rows = [
        {"src": "die katze", "mt": "the cat sleeps", "ref": "the cat"},
        {"src": "ein", "mt": "", "ref": "the dog runs"},
        {"src": "die katze", "mt": "dog", "ref": "the cat"},
    ]
    config = ServerConfig(server_type="comet", model=str(tmp_path / "comet"))
    found = answers(make_model(config, concurrency=4, environ={}), rows)
    ours = [float(reply.text) for reply in found]
    made.eval()
    assert ours == pytest.approx(made.predict(rows, gpus=0, progress_bar=False, num_workers=0).scores, abs=1e-5)
    assert len(set(ours)) == 3
    gone = ServerConfig(server_type="comet", model=str(tmp_path / "gone"))
    (error,) = answers(make_model(gone, concurrency=1, environ={}), rows[:1])
    assert isinstance(error, ModelNotFoundError)


@pytest.mark.filterwarnings("ignore")
def test_tiny_embeddings(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="needs newskills[embeddings]")
    library.SentenceTransformer(str(tiny_bert(tmp_path / "bert")), device="cpu").save(str(tmp_path / "tiny"))
    model = make_model(
        ServerConfig(server_type="nvembed", model=str(tmp_path / "tiny")), concurrency=2, environ={}
    )
    rows = [
        {"answer": "the cat", "options": ["dog runs", "the cat", "ein"]},
        {"answer": "ein", "options": ["ein", "dog"]},
    ]
    first, second = (json.loads(reply.text) for reply in answers(model, rows))
    assert first.index(max(first)) == 1
    assert max(first) == pytest.approx(1.0, abs=1e-4)
    assert second.index(max(second)) == 0
