# SPDX-License-Identifier: Apache-2.0
"""`pytest -m gpu`: the transformers server on an NVIDIA GPU, beside itself on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.launch.needs import lacking

torch = pytest.importorskip("torch", reason="no torch here: pip install 'newskills[transformers]'")
pytest.importorskip("transformers", reason="no transformers here: pip install 'newskills[transformers]'")

from tests.models.serving.hf.tiny_models import body, save_llama, served  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.gpu]
PROMPTS = ["The quick brown fox", "What is 12 + 30? It is", "a", "Question: Which city is it? Answer:"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not torch.cuda.is_available():
        lacking("GPU", "torch sees none here")
    return save_llama(tmp_path_factory.mktemp("hf") / "llama", hidden_size=128, intermediate_size=256)


def test_the_gpu_gives_the_replies_of_the_cpu(folder: Path) -> None:
    asked: list[dict[str, Any]] = [body(prompt, 12, logprobs=1) for prompt in PROMPTS]
    with served(folder) as cpu, served(folder, gpus=torch.cuda.device_count(), dtype="float32") as gpu:
        assert not gpu.lines
        assert gpu.texts(*asked) == cpu.texts(*asked)


@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_quantised_weights_answer(folder: Path, bits: Any) -> None:
    pytest.importorskip("bitsandbytes", reason="no bitsandbytes here")
    with served(folder, gpus=1, quantization=bits) as place:
        assert all(place.texts(*(body(prompt, 8) for prompt in PROMPTS)))
