# SPDX-License-Identifier: Apache-2.0
"""Models, adapters and settings that do not fit: one sentence each, before anything is served."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="no torch here: pip install 'newskills[transformers]'")
pytest.importorskip("transformers", reason="no transformers here: pip install 'newskills[transformers]'")

from tests.models.serving.hf.tiny_models import body, save_llama, served  # noqa: E402

from newskills.base.errors import ConfigError, DataError, NewskillsError  # noqa: E402
from newskills.models.serving import ServeSpec, prepare_server  # noqa: E402
from newskills.models.serving.hf.loading import load_served_model  # noqa: E402
from newskills.models.serving.hf.options import ServerOptions  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("hf") / "llama")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(folder, tmp_path / "copy")


def save_adapter(model: Path, target: Path, **settings: Any) -> Path:
    """A LoRA adapter of the model, whose pairs change its replies."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    base: Any = AutoModelForCausalLM.from_pretrained(model)
    pairs = {"target_modules": ["q_proj", "v_proj"], "init_lora_weights": False, "lora_alpha": 64, **settings}
    get_peft_model(base, LoraConfig(r=4, **pairs)).save_pretrained(target)
    return target


def test_an_adapter_changes_the_replies_as_peft_says(folder: Path, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    adapter = save_adapter(folder, tmp_path / "adapter")
    base: Any = AutoModelForCausalLM.from_pretrained(folder)
    adapted = PeftModel.from_pretrained(base, adapter)
    with served(folder, adapter=str(adapter)) as place:
        ids = torch.tensor([place.loaded.tokenizer.encode("The quick")])
        new = adapted.generate(input_ids=ids, do_sample=False, max_new_tokens=8)[0, ids.shape[1] :].tolist()
        wanted = place.loaded.decode(new)
        assert place.texts(body("The quick", 8)) == [wanted]
    with served(folder) as plain:
        assert plain.texts(body("The quick", 8)) != [wanted]


@pytest.mark.parametrize(
    ("changed", "settings"),
    [({"hidden_size": 64}, {}), ({"num_hidden_layers": 3}, {}), ({}, {"target_modules": ["lm_head"]})],
)
def test_an_adapter_of_another_model_is_refused(
    folder: Path, tmp_path: Path, changed: dict[str, Any], settings: dict[str, Any]
) -> None:
    other = save_llama(tmp_path / "other", **changed)
    adapter = save_adapter(other, tmp_path / "adapter", **settings)
    if settings:  # its pairs belong to a layer that the model has not
        kept = json.loads((adapter / "adapter_config.json").read_text())
        (adapter / "adapter_config.json").write_text(json.dumps({**kept, "target_modules": ["query_key_value"]}))
    with pytest.raises(DataError, match=r"does not fit .*/llama.*\n?.*other") as caught:
        load_served_model(ServerOptions(model=str(folder), adapter=str(adapter)))
    assert "\n" not in caught.value.message


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def test_a_folder_without_a_tokenizer_is_refused_before_a_process_starts(copy: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (copy / name).unlink()
    with pytest.raises(DataError, match="has no tokenizer"):
        prepare_server(ServeSpec(model=str(copy), server_type="transformers"), print)
    with pytest.raises(DataError, match="has no tokenizer that can be loaded"):
        load_served_model(ServerOptions(model=str(copy)))


@pytest.mark.parametrize(
    ("model", "arguments", "sentence"),
    [
        ("folder", ["--revision=v2"], "is a folder, which has no revisions"),
        ("folder", ["--quantization=4bit"], "--quantization=4bit needs a GPU"),
        ("folder", ["--quantization", "8bit"], "--quantization=8bit needs a GPU"),
        ("folder", ["--quantization", "2bit"], "invalid choice: '2bit'"),
        ("folder", ["--adapters=x"], "unrecognized arguments: --adapters=x. It has --help, --model"),
        ("folder", ["--adapter=empty"], "is no adapter of PEFT"),
        ("folder", ["--adapter=missing"], "There is no folder missing with an adapter"),
        ("nowhere/at/all", [], "There is no folder nowhere/at/all"),
        ("weights.gguf", [], "--server_type=llamacpp"),
        ("newskills-tests/no-such-model", ["--revision", "v2"], "could not be downloaded"),
        ("empty", [], "it has no config.json"),
    ],
)
def test_what_is_no_model_is_refused_before_a_process_starts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, arguments: list[str], sentence: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    place = {"folder": str(folder), "empty": str(tmp_path / "empty")}.get(model, model)
    with pytest.raises(NewskillsError) as caught:
        prepare_server(ServeSpec(model=place, server_type="transformers", extra_args=arguments), print)
    assert sentence in str(caught.value)


def test_gpus_that_are_not_there_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="sees no GPU here"):
        load_served_model(ServerOptions(model=str(folder), gpus=2))


def test_weights_that_do_not_fit_into_memory_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (folder / "model.safetensors").stat().st_size
    monkeypatch.setattr("newskills.models.serving.hf.loading.memory_left", lambda: (size - 1, size))
    with pytest.raises(ConfigError, match="GB of memory in torch"):
        load_served_model(ServerOptions(model=str(folder)))
    load_served_model(ServerOptions(model=str(folder), dtype="bfloat16"))


def test_weights_of_another_model_are_refused(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(DataError, match="belong to another model"):
        load_served_model(ServerOptions(model=str(copy)))


def test_a_model_that_is_no_language_model_is_refused(copy: Path) -> None:
    (copy / "config.json").write_text(json.dumps({"model_type": "vit"}))
    with pytest.raises(ConfigError, match="no causal or vision-language model"):
        load_served_model(ServerOptions(model=str(copy)))


def test_broken_weights_are_refused(copy: Path) -> None:
    (copy / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(DataError, match="has no weights that can be loaded"):
        load_served_model(ServerOptions(model=str(copy)))


def test_a_base_model_takes_no_conversations(copy: Path) -> None:
    config = json.loads((copy / "tokenizer_config.json").read_text())
    config.pop("chat_template")
    (copy / "tokenizer_config.json").write_text(json.dumps(config))
    with served(copy) as place:
        asked = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
        ((status, reply),) = place.ask(asked, path="/v1/chat/completions")
    assert status == 400
    assert "has no chat template: it is a base model" in reply["error"]
    assert "++inference.endpoint_type=text" in reply["error"]
