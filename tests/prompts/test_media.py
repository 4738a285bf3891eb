# SPDX-License-Identifier: Apache-2.0
import base64
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.prompts.files import Image, picture, sound

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.prompts import media
from newskills.prompts.renderer import PromptOverrides, load_prompt

soundfile = pytest.importorskip("soundfile")


def bomb(side: int) -> bytes:
    """A PNG that states `side` × `side` pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.png").write_bytes(picture())
    (tmp_path / "b.wav").write_bytes(sound())
    (tmp_path / "c.txt").write_text("secret")
    return tmp_path


def parts(folder: Path, row: Row, **config: Any) -> Any:
    prompt = load_prompt(
        {"user": "look {x}", "image_field": "image", **config}, PromptOverrides(data_dir=str(folder))
    )
    return prompt.messages({"x": 1, **row})[0].content


def sent(part: Row) -> tuple[str, bytes]:
    head, data = part["image_url"]["url"].split(";base64,")
    return head, base64.b64decode(data)


def test_an_image_stands_before_or_after_the_text(folder: Path) -> None:
    image = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(picture()).decode()},
    }
    text = {"type": "text", "text": "look 1"}
    assert parts(folder, {"image": "sub/a.png"}) == [image, text]
    assert parts(folder, {"image": "sub/a.png"}, image_position="after") == [text, image]
    assert parts(folder / "elsewhere", {"image": str(folder / "sub" / "a.png")}) == [image, text]
    assert parts(folder, {"image": ["sub/a.png", "sub/a.png"]}) == [image, image, text]
    for without in ({"image": None}, {"image": ""}, {}):
        assert parts(folder, without) == "look 1"


def test_addresses_stay(folder: Path) -> None:
    url = "https://example.org/a.png"
    assert parts(folder, {"image": url})[0]["image_url"]["url"] == url


def test_sound_stands_first(folder: Path) -> None:
    found = parts(folder, {"image": "sub/a.png", "sound": "b.wav"}, audio_field="sound")
    assert [part["type"] for part in found] == ["input_audio", "image_url", "text"]
    assert found[0]["input_audio"] == {"data": base64.b64encode(sound()).decode(), "format": "wav"}


def test_the_kind_is_that_of_the_bytes(folder: Path) -> None:
    (folder / "named.png").write_bytes(picture("JPEG"))
    assert sent(parts(folder, {"image": "named.png"})[0]) == ("data:image/jpeg", picture("JPEG"))
    samples = [[index % 7 / 10] for index in range(9000)]
    for suffix in ("flac", "ogg"):
        soundfile.write(folder / f"s.{suffix}", samples, 8000)
        part = media.audio_part(f"s.{suffix}", folder)["input_audio"]
        assert part["format"] == suffix
        assert base64.b64decode(part["data"]) == (folder / f"s.{suffix}").read_bytes()


def test_the_suffix_goes_to_the_text(folder: Path) -> None:
    overrides = PromptOverrides(data_dir=str(folder), prompt_suffix="!")
    prompt = load_prompt({"user": "look", "image_field": "image", "image_position": "after"}, overrides)
    assert prompt.messages({"image": "sub/a.png"})[0].content[0] == {"type": "text", "text": "look!"}


def test_large_images_are_scaled_down(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "wide.jpg").write_bytes(picture("JPEG", (9000, 30)))
    (folder / "clear.png").write_bytes(picture("PNG", (20, 8500), "RGBA"))
    for name, head, size in (("wide.jpg", "jpeg", (4096, 14)), ("clear.png", "png", (10, 4096))):
        found, data = sent(parts(folder, {"image": name})[0])
        assert found == f"data:image/{head}"
        assert Image.open(io.BytesIO(data)).size == size
    monkeypatch.setattr(media, "MAX_SENT", 100)
    with pytest.raises(DataError, match="even when scaled down"):
        parts(folder, {"image": "wide.jpg"})
    with pytest.raises(DataError, match="1,644 bytes of audio; at most 100"):
        media.audio_part("b.wav", folder)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"image": "none.png"}, "Record 7: Cannot read .*none.png: No such file"),
        ({"image": "c.txt"}, "Record 7: .*c.txt is not a readable image"),
        ({"image": "b.wav"}, "b.wav is not a readable image"),
    ],
)
def test_unfit_files(folder: Path, row: dict[str, str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        parts(folder, {"id": 7, **row})


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("cut.png", picture(size=(300, 300))[:-60], "cut.png is a broken image"),
        ("cut.jpg", picture("JPEG", (300, 300))[:-300], "cut.jpg is a broken image"),
        ("bomb.png", bomb(11_000), "refused: 11000 × 11000 pixels are more than 100,000,000"),
        ("bomb.png", bomb(60_000), "bomb.png is refused"),
        ("cut.wav", sound()[:-10], "it ends before the length that it states"),
        ("empty.wav", sound(0), "it is empty"),
        ("text.wav", b"no sound at all", "broken audio, or not audio"),
    ],
)
def test_broken_files(folder: Path, name: str, data: bytes, said: str) -> None:
    (folder / name).write_bytes(data)
    part = media.audio_part if name.endswith("wav") else media.image_part
    with pytest.raises(DataError, match=said):
        part(name, folder)


def test_a_cut_flac_is_broken(folder: Path) -> None:
    soundfile.write(folder / "s.flac", [[index * index % 97 / 100] for index in range(90_000)], 8000)
    whole = (folder / "s.flac").read_bytes()
    (folder / "s.flac").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="broken audio"):
        media.audio_part("s.flac", folder)


def test_large_files_are_refused(folder: Path) -> None:
    with (folder / "large.png").open("wb") as file:
        file.truncate(media.MAX_BYTES + 1)
    with pytest.raises(DataError, match="at most 67,108,864 are read"):
        parts(folder, {"image": "large.png"})


def test_a_changed_file_is_checked_anew(folder: Path) -> None:
    media.image_part("sub/a.png", folder)
    (folder / "sub" / "a.png").write_bytes(b"something else")
    with pytest.raises(DataError, match="not a readable image"):
        media.image_part("sub/a.png", folder)


def test_without_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    (folder / "new.wav").write_bytes(sound(50))
    with pytest.raises(ConfigError, match="soundfile, which is not installed") as told:
        media.audio_part("new.wav", folder)
    assert "newskills[media]" in str(told.value)
