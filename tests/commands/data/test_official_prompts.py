# SPDX-License-Identifier: Apache-2.0
"""Official prompts from preparation to the figures: downloaded, used, named, and noticed where they change."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.commands import judged
from tests.commands.judged import answering, judging, line
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

from newskills.prompts.official.table import FOLDER, entries_of
from newskills.prompts.renderer import PromptOverrides, load_prompt


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark of ours, which is asked with generic/math and judged with judge/math."""
    monkeypatch.setenv("NEWSKILLS_DATA_DIR", str(tmp_path / "data"))
    return judged.prepare(tmp_path)


def metrics_of(folder: Path) -> Any:
    return json.loads((folder / "out/metrics.json").read_text())["judged-sums"]


def texts(server: Any) -> list[str]:
    return [message["content"] for record in server.records for message in record.body["messages"]]


def rendered(name: str, folder: Path, row: dict[str, Any]) -> str:
    (message,) = load_prompt(name, PromptOverrides(official_folders=(str(folder),))).messages(row)
    return str(message.content)


def test_official_prompts_are_asked_and_named(
    here: Path, prompt_mirror: Path, fake_server: FakeServerFactory
) -> None:
    done = ns(f"ns prepare_data prompts --mirror={prompt_mirror} --offline", cwd=here)
    assert done.returncode == 0, done.stderr
    assert f"official prompts are in {here / 'data' / FOLDER}" in done.stdout
    folder = here / "data" / FOLDER
    model, judge = fake_server(answering()), fake_server(judging())
    words = line(model.url, judge.url, "--accept_lost=20")
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    question = {"problem": "Add 3 and 3."}
    assert rendered("generic/math", folder, question) in texts(model)
    assert rendered(
        "judge/math",
        folder,
        {
            "problem": "Add 3 and 3.",
            "predicted_answer": "it is not 6",
            "expected_answer": "6",
        },
    ) in texts(judge)
    label, theirs = (entries_of(name)[-1].label for name in ("generic/math", "judge/math"))
    numbers = metrics_of(here)["pass@1"]
    assert (numbers["prompt"], numbers["judge_prompt"]) == (label, theirs)
    assert label.startswith("official (github.com/NVIDIA-NeMo/Skills@8b18f3992854, sha256 ")
    asked = len(model.records), len(judge.records)
    assert ns(words, cwd=here).returncode == 0
    assert (len(model.records), len(judge.records)) == asked

    changed = ns(f"{words} --prompt_source=newskills", cwd=here)
    assert changed.returncode == 2
    assert "the prompt (judge/math" in changed.stderr
    assert "--prompt_source" in changed.stderr
    assert (len(model.records), len(judge.records)) == asked

    other = ns(words.replace("--output_dir=out", "--output_dir=own") + " --prompt_source=newskills", cwd=here)
    assert other.returncode == 0, other.stderr
    numbers = json.loads((here / "own/metrics.json").read_text())["judged-sums"]["pass@1"]
    assert (numbers["prompt"], numbers["judge_prompt"]) == ("newskills", "newskills")
    assert str(load_prompt("generic/math").messages(question)[0].content) in texts(model)

    compared = ns("ns compare out own", cwd=here)
    assert f"{label}" in compared.stdout + compared.stderr
    assert ", newskills" in compared.stdout + compared.stderr


def test_without_the_files_the_own_wording_is_used_and_said(here: Path, fake_server: FakeServerFactory) -> None:
    model, judge = fake_server(answering()), fake_server(judging())
    words = line(model.url, judge.url, "--accept_lost=20")
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("prompt: newskills") == 1
    numbers = metrics_of(here)["pass@1"]
    assert (numbers["prompt"], numbers["judge_prompt"]) == ("newskills", "newskills")
    again = ns(f"{words} --prompt_source=newskills", cwd=here)
    assert again.returncode == 0, again.stderr
    assert "prompt: newskills" not in again.stdout
    asked = len(model.records)
    missed = ns(words.replace("--output_dir=out", "--output_dir=new") + " --prompt_source=official", cwd=here)
    assert missed.returncode == 2
    assert "official wording of the prompt" in missed.stderr
    assert "ns prepare_data" in missed.stderr
    assert len(model.records) == asked


def test_a_changed_file_is_refused_with_one_sentence(here: Path, fake_server: FakeServerFactory) -> None:
    (entry,) = entries_of("judge/math")
    (place,) = entry.places(here / "data" / FOLDER).values()
    place.parent.mkdir(parents=True)
    place.write_text("user: '{problem} {expected_answer} {predicted_answer} Say yes.'\n")
    model, judge = fake_server(answering()), fake_server(judging())
    done = ns(line(model.url, judge.url), cwd=here)
    assert done.returncode == 2
    assert "is not the published file" in done.stderr
    assert "Traceback" not in done.stderr
    assert not model.records


def test_generations_and_training_data_agree(
    here: Path, prompt_mirror: Path, fake_server: FakeServerFactory
) -> None:
    assert ns(f"ns prepare_data prompts --mirror={prompt_mirror} --offline", cwd=here).returncode == 0
    model = fake_server(answering())
    (here / "in.jsonl").write_text('{"problem": "Add 3 and 3."}\n')
    words = (
        "ns generate --input_file=in.jsonl --output_dir={out} ++prompt_config=generic/math --server_type=vllm "
        f"--model=fake --server_address={model.url}"
    )
    assert ns(words.format(out="a"), cwd=here).returncode == 0
    assert ns(words.format(out="b") + " --prompt_source=newskills", cwd=here).returncode == 0
    official = rendered("generic/math", here / "data" / FOLDER, {"problem": "Add 3 and 3."})
    own = str(load_prompt("generic/math").messages({"problem": "Add 3 and 3."})[0].content)
    assert texts(model) == [official, own]
    assert official != own


def test_a_benchmark_gets_its_prompt_beside_its_rows(mirror: Path, prompt_mirror: Path, tmp_path: Path) -> None:
    words = f"ns prepare_data svamp --data_dir={tmp_path} --offline"
    first = ns(f"{words} --mirror={mirror}", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("official prompts cannot be downloaded") == 1
    assert "svamp" in first.stderr
    second = ns(f"{words} --mirror={prompt_mirror}", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "official prompts" not in second.stderr
    entry = entries_of("generic/math")[-1]
    (place,) = entry.places(tmp_path / "svamp" / FOLDER).values()
    assert [hashlib.sha256(place.read_bytes()).hexdigest()] == list(entry.files.values())
    place.write_text("user: '{problem}'\n")
    third = ns(f"{words} --mirror={prompt_mirror}", cwd=tmp_path)
    assert third.returncode == 0, third.stderr
    assert [hashlib.sha256(place.read_bytes()).hexdigest()] == list(entry.files.values())


def test_a_mirror_with_another_text_is_refused(prompt_mirror: Path, mirror: Path, tmp_path: Path) -> None:
    entry = entries_of("generic/math")[-1]
    (path,) = entry.files
    place = tmp_path / "mirror" / entry.url(path).removeprefix("https://")
    place.parent.mkdir(parents=True)
    place.write_text("user: '{problem}'\n")
    done = ns(f"ns prepare_data svamp --data_dir={tmp_path} --offline --mirror={mirror}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = ns(f"ns prepare_data svamp --data_dir={tmp_path} --offline --mirror={tmp_path}/mirror", cwd=tmp_path)
    assert done.returncode == 1
    assert "is not the file that" in done.stderr
    assert not (tmp_path / "svamp" / FOLDER).exists()


def test_mirrors_hold_the_prompts_of_their_benchmarks(mirror: Path, prompt_mirror: Path, tmp_path: Path) -> None:
    """Rows from one mirror, prompts from another; the new one has both, and prepares both."""
    built = tmp_path / "built"
    for source in (mirror, prompt_mirror):
        ns(f"ns mirror build svamp {built} --mirror={source} --offline", cwd=tmp_path)
    done = ns(f"ns mirror check {built}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = json.loads((built / "MANIFEST.json").read_text())["files"]
    entry = entries_of("generic/math")[-1]
    (sha256,) = entry.files.values()
    (prompt,) = [file for file in listed if file["sha256"] == sha256]
    assert (prompt["licence"], prompt["benchmarks"]) == ("Apache-2.0", ["svamp"])
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
    done = ns(f"ns prepare_data svamp --data_dir=data --offline --mirror={built}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "official prompts" not in done.stderr
    assert (tmp_path / "data/svamp" / FOLDER / "generic/math/math.yaml").is_file()


def test_mt_bench_has_an_instruction_for_each_turn(
    mirror: Path, prompt_mirror: Path, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    for place in (mirror, prompt_mirror):
        done = ns(f"ns prepare_data mt-bench --data_dir=data --offline --mirror={place}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    folder = tmp_path / "data/mt-bench" / FOLDER
    model = fake_server(Script(answer=Answer(kind="table", template="%s", table={}, text="So it is.")))
    judge = fake_server(Script(answer=Answer(kind="table", template="%s", table={}, text="Good. Rating: [[7]]")))
    done = ns(line(model.url, judge.url, benchmarks="mt-bench"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "out/metrics.json").read_text())["mt-bench"]["pass@1"]
    assert numbers["judge_prompt"].startswith("official (")
    asked = [tuple(message["content"] for message in record.body["messages"]) for record in judge.records]
    rows = rows_of(tmp_path / "data/mt-bench/test.jsonl")
    assert len(asked) == 2 * len(rows)
    for row in rows:
        fields = {f"question_{n}": question for n, question in enumerate(row["turns"], 1)}
        fields |= {"answer_1": "So it is.", "answer_2": "So it is."}
        fields |= {f"ref_answer_{n}": answer for n, answer in enumerate(row["turn_references"], 1)}
        with_reference = row["category"] in ("math", "reasoning", "coding") and row["turn_references"]
        suffix = "_with_ref" if with_reference else ""
        for turn in ("turn1", "turn2"):
            name = f"judge/mt-bench/{turn}{suffix}" if turn + suffix != "turn1" else "judge/mt-bench"
            prompt = load_prompt(name, PromptOverrides(official_folders=(str(folder),)))
            assert prompt.source.startswith("official (")
            assert tuple(str(message.content) for message in prompt.messages(fields)) in asked


def test_arena_hard_is_judged_as_its_authors_ask(
    mirror: Path, prompt_mirror: Path, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    for place in (mirror, prompt_mirror):
        done = ns(f"ns prepare_data arena-hard --data_dir=data --offline --mirror={place}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    model = fake_server(Script(answer=Answer(kind="table", template="%s", table={}, text="Mine.")))
    judge = fake_server(
        Script(answer=Answer(kind="table", template="%s", table={}, text="My final verdict is tie: [[A=B]]."))
    )
    done = ns(line(model.url, judge.url, "++max_samples=3", benchmarks="arena-hard"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "out/metrics.json").read_text())["arena-hard"]["pass@1"]
    assert numbers["judge_prompt"] == entries_of("judge/arena")[-1].label
    assert numbers["invalid_scores"] == 0
    prompt = load_prompt(
        "judge/arena", PromptOverrides(official_folders=(str(tmp_path / "data/arena-hard" / FOLDER),))
    )
    row = rows_of(tmp_path / "data/arena-hard/test.jsonl")[0]
    messages = prompt.messages({**row, "answer_1": "Mine.", "answer_2": row["baseline_answer"]})
    assert [message.content for message in messages] in [
        [message["content"] for message in record.body["messages"]] for record in judge.records
    ]
