# SPDX-License-Identifier: Apache-2.0
import base64

import pytest

from newskills.base.errors import DataError
from newskills.prompts import media
from newskills.prompts.renderer import PromptOverrides, load_prompt


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "b.wav").write_bytes(b"RIFF")
    (tmp_path / "c.txt").write_text("secret")
    return tmp_path


def parts(folder, row, **config):
    prompt = load_prompt(
        {"user": "look {x}", "image_field": "image", **config}, PromptOverrides(data_dir=str(folder))
    )
    return prompt.messages({"x": 1, **row})[0].content


def test_an_image_stands_before_or_after_the_text(folder):
    image = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()},
    }
    text = {"type": "text", "text": "look 1"}
    assert parts(folder, {"image": "sub/a.png"}) == [image, text]
    assert parts(folder, {"image": "sub/a.png"}, image_position="after") == [text, image]
    assert parts(folder / "elsewhere", {"image": str(folder / "sub" / "a.png")}) == [image, text]


def test_addresses_stay(folder):
    url = "https://example.org/a.png"
    assert parts(folder, {"image": url})[0]["image_url"]["url"] == url


def test_sound_stands_first(folder):
    found = parts(folder, {"image": "sub/a.png", "sound": "b.wav"}, audio_field="sound")
    assert [part["type"] for part in found] == ["input_audio", "image_url", "text"]
    assert found[0]["input_audio"] == {"data": base64.b64encode(b"RIFF").decode(), "format": "wav"}


def test_the_suffix_goes_to_the_text(folder):
    overrides = PromptOverrides(data_dir=str(folder), prompt_suffix="!")
    prompt = load_prompt({"user": "look", "image_field": "image", "image_position": "after"}, overrides)
    assert prompt.messages({"image": "sub/a.png"})[0].content[0] == {"type": "text", "text": "look!"}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"image": "none.png"}, "Cannot read .*none.png: No such file"),
        ({"image": "c.txt"}, "does not look like a file of the kind image"),
        ({"image": "b.wav"}, "does not look like a file of the kind image"),
        ({}, "Field 'image' is missing"),
    ],
)
def test_unfit_files(folder, row, said):
    with pytest.raises(DataError, match=said):
        parts(folder, row)


def test_large_files_are_refused(folder):
    with (folder / "large.png").open("wb") as file:
        file.truncate(media.MAX_BYTES + 1)
    with pytest.raises(DataError, match="at most 67,108,864 fit"):
        parts(folder, {"image": "large.png"})
