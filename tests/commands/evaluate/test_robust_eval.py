# SPDX-License-Identifier: Apache-2.0
import json
import sys
from pathlib import Path

import msgspec
import pytest
from tests.commands.clusters import BENCHMARK, RIGHT, SERVED, Place, reachable_server
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.launch.slurm_cluster import require_cluster
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Script

from newskills import robust_eval
from newskills.base.errors import NewskillsError

SET = r"""
own-sums:
  - prompt_config: ./plain.yaml
  - prompt: ./angles.yaml
    extract_regex: '<<(.+?)>>'
"""
WRONG = {"Twist: Add 3 and 3.": "<<7>>", "Twist: Add 4 and 4.": "none"}
"""What only the second prompt brings about."""
TABLE = {f"Twist: {text}": f"<<{answer}>>" for text, answer in RIGHT.items()} | WRONG
TABLE |= {text: rf"\boxed{{{answer}}}" for text, answer in RIGHT.items()}
ANSWERS = Answer(kind="table", table=TABLE, template="%s")


def prompts(folder: Path) -> None:
    (folder / "plain.yaml").write_text("user: |-\n  Task. {problem}\n")
    (folder / "angles.yaml").write_text("user: |-\n  Twist: {problem}\n")
    (folder / "set.yaml").write_text(SET)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    prompts(tmp_path)
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def line(server: FakeServer | FakeServerProcess, *options: str) -> str:
    return " ".join(
        [
            f"ns robust_eval --server_type=vllm --model=fake --server_address={server.url} --output_dir=out",
            "--data_dir=data --benchmarks=./sums.py:2 --prompt_set_config=./set.yaml",
            *options,
        ]
    )


def test_every_prompt_is_evaluated_and_compared(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=ANSWERS))
    done = ns(line(server), cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(server.records) == 40
    out = here / "out"
    record = rows_of(out / "own-sums/angles/eval-results/own-sums/output-rs1.jsonl")[3]
    assert (record["predicted_answer"], record["outcome"]) == ("7", "wrong")
    found = json.loads((out / "summarize_robustness/metrics.json").read_text())["own-sums"]
    assert found["metric"] == "symbolic_correct"
    assert found["prompts"]["plain"]["avg"] == found["all_prompts"]["max"] == pytest.approx(100)
    assert found["prompts"]["angles"]["avg"] == found["all_prompts"]["min"] == pytest.approx(80)
    assert found["all_prompts"]["avg"] == pytest.approx(90)
    assert found["all_prompts"]["std"] == found["prompt_sensitivity"] == pytest.approx(10)
    assert found["prompts"]["angles"]["std"] == pytest.approx(0)
    assert (found["all_prompts"]["num_runs"], found["num_seeds"]) == (4, 2)
    # of the six pairs of runs, two agree on problem 3 (7 twice, 6 twice), one on problem 4 (no answer agrees with none)
    assert found["all_prompts"]["consistency_rate"] == pytest.approx(100 * (8 + 2 / 6 + 1 / 6) / 10)
    assert found["prompts"]["plain"]["consistency_rate"] == pytest.approx(100)
    assert found["prompts"]["angles"]["no_answer"] == pytest.approx(10)
    tables = (out / "summarize_robustness/tables.txt").read_text()
    assert tables.strip() in done.stdout
    assert "own-sums@4" in tables
    again = ns(line(server), cwd=here)
    assert again.returncode == 0
    assert len(server.records) == 40
    alone = ns("ns summarize_robustness out --save_metrics_path=elsewhere/numbers.json", cwd=here)
    assert alone.returncode == 0, alone.stderr
    assert tables.strip() in alone.stdout
    assert json.loads((here / "elsewhere/numbers.json").read_text())["own-sums"] == found


def test_what_the_instrument_lost_has_no_score(here: Path, fake_server: FakeServerFactory) -> None:
    fault = Fault(kind="status", status=400, message="no", marker="Twist: Add 5 and")
    server = fake_server(Script(answer=ANSWERS, faults=(fault,)))
    done = ns(line(server, "++server.enable_soft_fail=true"), cwd=here)
    assert done.returncode == 1
    assert "own-sums-angles: 10.0 % of the samples are unscored" in done.stderr
    assert "scores are withheld" in done.stdout
    found = json.loads((here / "out/summarize_robustness/metrics.json").read_text())["own-sums"]
    assert found["withheld"] is True
    assert found["all_prompts"]["avg"] is found["prompts"]["angles"]["max"] is found["prompt_sensitivity"] is None
    refused = ns("ns summarize_robustness out", cwd=here)
    assert refused.returncode == 1
    assert "own-sums: with some prompt, more than 1 %" in refused.stderr
    taken = ns("ns summarize_robustness out --accept_lost=20", cwd=here)
    assert taken.returncode == 0
    accepted = json.loads((here / "out/summarize_robustness/metrics.json").read_text())["own-sums"]
    assert accepted["prompts"]["angles"]["avg"] == pytest.approx(100 * 7 / 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("++prompt_config=generic/math", "the prompts come from --prompt_set_config"),
        ("--prompt_set_config=./others.yaml", "own-sums"),
        ("--prompt_set_config=./nothing.yaml", "no file nothing.yaml"),
        ("--prompt_set_config=./twice.yaml", "two prompts have the name plain"),
        ("++eval_type=exact", "extract_regex cannot be used for own-sums"),
    ],
)
def test_what_cannot_work_is_refused_before_any_request(
    options: str, message: str, here: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=ANSWERS))
    (here / "others.yaml").write_text("gsm8k: [{prompt: ./plain.yaml}]")
    (here / "twice.yaml").write_text("own-sums: [{prompt: ./plain.yaml}, {prompt_config: ./plain.yaml}]")
    done = ns(line(server, options), cwd=here)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert server.records == []


def test_nothing_is_sent_for_a_dry_run(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=ANSWERS))
    done = ns(line(server, "--dry_run"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert "Twist: Add 0 and 0." in done.stdout
    assert "Task. Add 0 and 0." in done.stdout
    assert server.records == []
    assert not (here / "out").exists()


def test_a_folder_without_prompts_is_an_error(tmp_path: Path) -> None:
    done = ns("ns summarize_robustness .", cwd=tmp_path)
    assert done.returncode == 2
    assert "no results of several prompts" in done.stderr


@pytest.mark.nightly
def test_one_pipeline_for_all_prompts(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    place.config("mine", "executor: none")
    prompts(tmp_path)
    server = fake_server(Script(answer=ANSWERS), process=True)
    words = line(server, "--cluster=mine --num_jobs=2").replace("--data_dir=data", "")
    done = place.ns(words)
    assert done.returncode == 0, done.stderr + place.logs("robust_eval")
    names = [job.name for job in place.experiments("robust_eval")[0].jobs]
    assert names[-1] == "summarize-robustness"
    assert [name for name in names if name.startswith("own-sums-angles-")] == [
        "own-sums-angles-own-sums-rs0",
        "own-sums-angles-own-sums-rs1",
        "own-sums-angles-summarize",
    ]
    assert "own-sums@4" in done.stdout
    assert "pass@1" not in done.stdout
    assert len(server.records) == 40
    again = place.ns(words)
    assert "nothing to do" in again.stderr
    monkeypatch.chdir(tmp_path)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NewskillsError, match=r"no file none\.yaml"):
        robust_eval(benchmarks="./sums.py", prompt_set_config="./none.yaml", model="fake", server_type="vllm")


def test_one_server_for_all_prompts(here: Path) -> None:
    script = msgspec.json.encode(Script(answer=ANSWERS)).decode()
    done = ns(
        "ns robust_eval --server_type=generic --model=fake --server_gpus=0 --benchmarks=./sums.py --data_dir=data "
        "--output_dir=out --prompt_set_config=./set.yaml",
        f"--server_entrypoint={sys.executable} {SERVED}",
        f"--server_args=--script '{script}'",
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    said = "".join(path.read_text() for path in (here / "out").rglob("*.log"))
    assert said.count("serves on this machine") == 1
    found = json.loads((here / "out/summarize_robustness/metrics.json").read_text())["own-sums"]
    assert (found["all_prompts"]["min"], found["all_prompts"]["max"]) == pytest.approx((80, 100))
    assert (found["num_seeds"], found["prompts"]["plain"]["consistency_rate"]) == (1, None)


@pytest.mark.nightly
def test_on_slurm(tmp_path: Path) -> None:
    require_cluster()
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    prompts(tmp_path)
    with reachable_server(Script(answer=ANSWERS)) as server:
        words = line(server, "--cluster=real --expname=wordings").replace("--data_dir=data", "")
        done = place.ns(words)
        assert done.returncode == 0, done.stderr
        states = place.ended("wordings")
        assert list(states)[-1] == "summarize-robustness"
        assert len(states) == 2 * 3 + 1
        assert set(states.values()) == {"completed"}, (states, place.logs("wordings"))
        found = json.loads((tmp_path / "out/summarize_robustness/metrics.json").read_text())["own-sums"]
        assert found["all_prompts"]["avg"] == pytest.approx(90)
        assert found["all_prompts"]["num_runs"] == 4
        again = place.ns(words)
        assert "nothing to do" in again.stderr
        assert len(server.records) == 40


def test_a_benchmark_without_prompts_of_its_own_has_those_of_its_usual_prompt(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    assert ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path).returncode == 0
    asked = "ns robust_eval --server_type=vllm --model=fake --server_address=http://127.0.0.1:9 --dry_run"
    done = ns(f"{asked} --data_dir=data --benchmarks=./sums.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("== own-sums-boxed_") == 10
    (tmp_path / "sums.py").write_text(BENCHMARK.replace("generic/math", "generic/problem-augmentation"))
    done = ns(f"{asked} --data_dir=data --benchmarks=./sums.py", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "no kind that shows the same fields and asks for the same form of answer as `generic/problem-augmentation`"
        in done.stderr
    )
