# SPDX-License-Identifier: Apache-2.0
"""Conversations with images: the replies of a small LLaVA, beside its own `generate` for each alone."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="no torch here: pip install 'newskills[transformers]'")
pytest.importorskip("transformers", reason="no transformers here: pip install 'newskills[transformers]'")
Image = pytest.importorskip("PIL.Image", reason="no Pillow here: pip install 'newskills[transformers]'")

from tests.harness.endpoint import make_tokenizer  # noqa: E402
from tests.models.serving.hf.tiny_models import LLAMA, Served, save_llama, served  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{% for part in m.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TALKS = [
    ("What is it?", ["red"]),
    ("What is it? Tell me more", ["blue"]),
    ("Both?", ["red", "green"]),
    ("Hello", []),
]


def save_llava(folder: Path) -> Path:
    import transformers

    make_tokenizer(folder)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    image = tokenizer.convert_tokens_to_ids("<image>")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**sizes, image_size=28, patch_size=14, initializer_range=0.4),
        text_config=transformers.LlamaConfig(**{**LLAMA, "vocab_size": len(tokenizer)}),
        image_token_index=image,
        image_token_id=image,
    )
    torch.manual_seed(0)
    transformers.LlavaForConditionalGeneration(config).save_pretrained(folder)
    small = {"size": {"shortest_edge": 28}, "crop_size": {"height": 28, "width": 28}}
    processor: Any = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil(**small),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
        image_token="<image>",
    )
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(save_llava(tmp_path_factory.mktemp("hf") / "llava")) as place:
        yield place


def drawn(colour: str) -> Any:
    return Image.new("RGB", (40, 30), colour)


def address(colour: str) -> str:
    file = io.BytesIO()
    drawn(colour).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def asking(text: str, *urls: str) -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    messages = [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]
    return {"messages": messages, "max_tokens": 8, "temperature": 0, "skip_special_tokens": False}


def chat(place: Served, *bodies: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return place.ask(*bodies, path="/v1/chat/completions")


def alone(place: Served, text: str, colours: list[str]) -> str:
    parts = [*({"type": "image", "image": drawn(colour)} for colour in colours), {"type": "text", "text": text}]
    turns = [{"role": "user", "content": parts}]
    settings = {"tokenize": True, "return_dict": True, "return_tensors": "pt", "add_generation_prompt": True}
    inputs = place.loaded.processor.apply_chat_template(turns, **settings)
    out = place.loaded.model.generate(**inputs, do_sample=False, max_new_tokens=8)
    return place.loaded.decode(out[0, inputs["input_ids"].shape[1] :].tolist())


def test_images_and_texts_side_by_side_are_answered_as_alone(llava: Served) -> None:
    replies = chat(llava, *(asking(text, *map(address, colours)) for text, colours in TALKS))
    texts = [reply["choices"][0]["message"]["content"] for _, reply in replies]
    assert texts == [alone(llava, text, colours) for text, colours in TALKS]
    ((_, other),) = chat(llava, asking("What is it?", address("green")))
    assert other["choices"][0]["message"]["content"] != texts[0], "the image makes no difference"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("https://example.org/a.png", "this server fetches nothing"),
        ("data:image/png;base64,AAAA", "cannot be read"),
    ],
)
def test_images_that_cannot_be_read_are_refused(llava: Served, url: str, sentence: str) -> None:
    ((status, reply),) = chat(llava, asking("What is it?", url))
    assert status == 400
    assert sentence in reply["error"]


def test_a_model_of_texts_takes_no_images(tmp_path: Path) -> None:
    with served(save_llama(tmp_path / "llama")) as place:
        ((status, reply),) = chat(place, asking("What is it?", address("red")))
    assert (status, reply["error"]) == (400, "This model takes no images.")
