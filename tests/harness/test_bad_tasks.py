# SPDX-License-Identifier: Apache-2.0
"""Tasks that cannot be run: one sentence that names the fault, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.lm_eval.building import HarnessWishes
from newskills.benchmarks.lm_eval.load import load_harness
from newskills.benchmarks.lm_eval.rows import task_rows
from tests.commands.running import ns
from tests.harness.endpoint import ScriptedEndpoint, ScriptedModel, make_tokenizer
from tests.harness.local_tasks import write_task

pytest.importorskip("lm_eval", reason="no lm_eval here: pip install -e '.[lm-eval]'")
pytestmark = pytest.mark.filterwarnings("ignore")

PLAIN: dict[str, Any] = {
    "task": "plain",
    "dataset_path": "json",
    "test_split": "test",
    "doc_to_text": "q",
    "doc_to_target": "a",
}


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path_factory.getbasetemp() / "index"))
    monkeypatch.chdir(tmp_path)


def rows(name: str, **wishes: Any) -> list[dict[str, Any]]:
    made = load_harness(name, HarnessWishes(**wishes))
    assert isinstance(made, list)
    return list(task_rows(made[0].origin, made[0].wishes, True, "test"))


def written(tmp_path: Path, **settings: Any) -> str:
    (tmp_path / "rows.jsonl").write_text('{"q": "x", "a": "y"}\n')
    data = {"dataset_kwargs": {"data_files": {"test": str(tmp_path / "rows.jsonl")}}}
    path = tmp_path / "plain.yaml"
    path.write_text(json.dumps({**PLAIN, **data, **settings}))
    return f"lm-eval:{path}"


def test_an_unknown_name_is_told_its_neighbours() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown task of lm_eval 'arc_eazy'; did you mean 'arc_easy'"):
        load_harness("lm-eval:arc_eazy")
    with pytest.raises(UnknownNameError, match="nosuch_"):
        load_harness("lm-eval:nosuch_*")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("task: x\ndataset_path: json\n  bad: [1\n", r"task\.yaml, line 3, column 6: this is not YAML"),
        (
            "task: x\noutput_tipe: y\n",
            r"task\.yaml, line 2, column 1: .* no key 'output_tipe'; did you mean 'output_type'",
        ),
        ("[1, 2]\n", r"task\.yaml, line 1, column 1: expected keys with values"),
        ("dataset_path: json\n", r"task\.yaml"),
        ("task: x\ndoc_to_text: !function nosuch.f\n", r"nosuch"),
        ("task: x\ninclude: nosuch.yaml\n", r"nosuch\.yaml"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_harness(f"lm-eval:{path}")


def test_what_is_not_here_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no file .*nosuch\.yaml"):
        load_harness("lm-eval:./nosuch.yaml")
    with pytest.raises(
        DataError, match=r"reads the data set allenai/ai2_arc ARC-Easy of the hub, .*ns prepare_data"
    ):
        rows("lm-eval:arc_easy")
    with pytest.raises(ConfigError, match=r"Unable to find .*gone\.jsonl"):
        rows(written(tmp_path, dataset_kwargs={"data_files": {"test": str(tmp_path / "gone.jsonl")}}))
    (tmp_path / "needy.py").write_text("import nosuch_package\n")
    (tmp_path / "needy.yaml").write_text("task: needy\ndoc_to_text: !function needy.f\n")
    with pytest.raises(
        ConfigError, match=r"needs the package nosuch_package\. Install it: pip install nosuch_package"
    ):
        load_harness("lm-eval:./needy.yaml")
    (tmp_path / "nosuch_package.py").touch()
    with pytest.raises(ConfigError, match=r"lies beside its file.* Run with PYTHONPATH="):
        load_harness("lm-eval:./needy.yaml")


def test_tasks_that_run_programs_or_show_images_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="humaneval runs programs of the model on this machine, outside any sandbox"
    ):
        load_harness("lm-eval:humaneval")
    with pytest.raises(ConfigError, match="shows images or plays sound"):
        load_harness("lm-eval:mmmu_val_art")


def test_rows_that_json_does_not_hold_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dates.py").write_text(
        "import datetime\n\ndef dated(docs):\n"
        "    return docs.map(lambda doc: {**doc, 'day': datetime.datetime(2026, 1, 2)})\n"
    )
    name = written(tmp_path)
    path = Path(name.removeprefix("lm-eval:"))
    path.write_text(path.read_text()[:-1] + ', "process_docs": !function dates.dated}')
    with pytest.raises(DataError, match="the field 'day' of its documents is a datetime that JSON does not hold"):
        rows(name)


def test_settings_reach_the_requests(tmp_path: Path) -> None:
    (row,) = rows(written(tmp_path), gen_kwargs={"until": ["END"], "max_gen_toks": 7})
    assert row["requests"] == [{"kind": "generate_until", "context": 0, "until": ["END"]}]
    made = load_harness(written(tmp_path), HarnessWishes(gen_kwargs={"max_gen_toks": 7, "top_p": 0.5}))
    assert isinstance(made, list)
    assert made[0].defaults["inference.tokens_to_generate"] == 7
    assert made[0].defaults["inference.top_p"] == 0.5
    assert made[0].defaults["inference.top_k"] is None


def test_another_wish_or_file_is_another_place(tmp_path: Path) -> None:
    name = written(tmp_path)
    places = {load_harness(name, HarnessWishes(num_fewshot=count))[0].place for count in (None, 0, 5)}
    assert len(places) == 3


def refused(tmp_path: Path, task: str, *words: str, logprobs: bool = True) -> str:
    file = write_task(tmp_path, task)
    model = ScriptedModel(make_tokenizer(tmp_path / "tokenizer"), ["x"], logprobs=logprobs)
    with ScriptedEndpoint(model) as endpoint:
        done = ns(
            f"ns eval --server_type=generic --server_address={endpoint.url} --model=scripted --output_dir=out",
            f"--benchmarks=lm-eval:{file}",
            *words,
            cwd=tmp_path,
            env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")},
        )
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    assert len([body for body in model.bodies if "prompt" in body or "messages" in body]) <= 2  # probes
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_server_that_cannot_do_it_is_refused_before_the_first_row(tmp_path: Path) -> None:
    assert "no log-probabilities of the prompt" in refused(tmp_path, "arc_easy", logprobs=False)
    assert "++tokenizer=NAME" in refused(tmp_path, "wikitext")
    assert "++apply_chat_template=true" in refused(tmp_path, "babi", "++inference.endpoint_type=chat")
