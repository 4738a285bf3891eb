# SPDX-License-Identifier: Apache-2.0
"""Pipelines of `ns` commands as processes of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.commands.clusters import BENCHMARK, SERVED, SUMS, Place, answers
from tests.commands.running import rows_of, write
from tests.commands.served import reckon
from tests.conftest import FakeServerFactory
from tests.server import FakeServer, FakeServerProcess, Script

from newskills import run_cmd
from newskills.base.errors import NewskillsError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.config("mine", "executor: none")
    return place


def evaluation(server: FakeServer | FakeServerProcess, *options: str) -> str:
    return " ".join(
        [
            "ns eval --cluster=mine --benchmarks=./sums.py:3 --server_type=vllm --model=fake --output_dir=out",
            f"--server_address={server.url}",
            *options,
        ]
    )


@pytest.mark.slow
def test_units_are_spread_over_jobs_and_merged_once(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(), process=True)
    done = place.ns(evaluation(server, "--num_chunks=4 --num_jobs=5 --expname=spread"))
    assert done.returncode == 0, done.stderr + place.logs("spread")
    jobs = place.experiments("spread")[0].jobs
    assert len(jobs) == 6
    shares = [json.loads(Path(job.folder, "run.json").read_text())["units"] for job in jobs[:5]]
    assert sorted(map(len, shares)) == [2, 2, 2, 3, 3]
    folder = place.folder / "out/eval-results/own-sums"
    for seed in range(3):
        assert [row["id"] for row in rows_of(folder / f"output-rs{seed}.jsonl")] == [row["id"] for row in SUMS]
    assert not list(folder.glob("*chunk_?.jsonl"))
    assert len(server.records) == 30
    assert json.loads((place.folder / "out/metrics.json").read_text())["own-sums"]["pass@3"]["num_entries"] == 10
    assert "pass@1[avg-of-3]" in done.stdout
    again = place.ns(evaluation(server, "--num_chunks=4 --num_jobs=5 --expname=spread"))
    assert again.returncode == 0
    assert "nothing to do" in again.stderr
    assert len(server.records) == 30


@pytest.mark.slow
def test_jobs_take_chunks_from_a_queue(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(), process=True)
    done = place.ns(evaluation(server, "--num_jobs=3 --work_queue --expname=queued"))
    assert done.returncode == 0, done.stderr + place.logs("queued")
    jobs = place.experiments("queued")[0].jobs
    shares = [json.loads(Path(job.folder, "run.json").read_text()) for job in jobs[:3]]
    assert [(share["shared"], share["chunks"]) for share in shares] == [(True, [[[0, 24]]] * 3)] * 3
    assert [share["first"] for share in shares] == [0, 24, 48]
    folder = place.folder / "out/eval-results/own-sums"
    for seed in range(3):
        assert [row["id"] for row in rows_of(folder / f"output-rs{seed}.jsonl")] == [row["id"] for row in SUMS]
    assert len(server.records) == 30
    assert json.loads((place.folder / "out/metrics.json").read_text())["own-sums"]["pass@3"]["num_entries"] == 10


def test_a_queue_needs_jobs_and_old_results(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers())
    refused = place.ns(evaluation(server, "--work_queue"))
    assert refused.returncode == 2
    assert "--work_queue needs the number of jobs" in refused.stderr
    refused = place.ns(evaluation(server, "--work_queue --num_jobs=2 --rerun_done"))
    assert refused.returncode == 2
    assert "--work_queue and --rerun_done exclude each other" in refused.stderr
    assert not server.records


def test_only_what_is_missing_runs(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(), process=True)
    assert place.ns(evaluation(server, "--num_jobs=3")).returncode == 0
    folder = place.folder / "out/eval-results/own-sums"
    for name in ("output-rs1.jsonl", "output-rs1.jsonl.done"):
        (folder / name).unlink()
    done = place.ns(evaluation(server, "--num_jobs=3"))
    assert done.returncode == 0, done.stderr
    assert [job.name for job in place.experiments("eval")[0].jobs] == ["own-sums-rs1", "summarize"]
    assert len(server.records) == 40


def test_several_benchmarks_have_summaries_and_one_of_all(place: Place, fake_server: FakeServerFactory) -> None:
    (place.folder / "more.py").write_text((place.folder / "sums.py").read_text().replace("own-sums", "more-sums"))
    assert place.ns("ns prepare_data ./more.py").returncode == 0
    server = fake_server(answers(), process=True)
    done = place.ns(evaluation(server, "--num_jobs=-1").replace("./sums.py:3", "./sums.py,./more.py"))
    assert done.returncode == 0, done.stderr
    jobs = {job.name: set(job.depends_on) for job in place.experiments("eval")[0].jobs}
    assert jobs["summarize-own-sums"] == {"own-sums"}
    assert jobs["summarize"] == {"summarize-own-sums", "summarize-more-sums"}
    assert set(json.loads((place.folder / "out/metrics.json").read_text())) == {"own-sums", "more-sums"}
    for name in ("own-sums", "more-sums"):
        assert (place.folder / f"out/eval-results/{name}/metrics.json").is_file()


def test_a_server_and_a_sandbox_beside_the_client(place: Place) -> None:
    write(place.folder / "in.jsonl", [{"problem": row["problem"]} for row in SUMS])
    done = place.ns(
        "ns generate --cluster=mine --num_jobs=2 --input_file=in.jsonl --output_dir=out --num_random_seeds=2 "
        f"--server_type=generic --model=fake --server_gpus=0 --server_entrypoint={SERVED} "
        "++prompt_config=generic/math --postprocess_cmd",
        "cat out/output-rs*.jsonl | wc -l >>lines",
    )
    assert done.returncode == 0, done.stderr + place.logs("generate")
    assert [len(rows_of(place.folder / f"out/output-rs{seed}.jsonl")) for seed in range(2)] == [10, 10]
    counted = (place.folder / "lines").read_text().split()
    assert len(counted) == 2
    assert set(counted) <= {"10", "20"}
    jobs = place.experiments("generate")[0].jobs
    ports = {Path(job.folder, "ports/server").read_text() for job in jobs[:2]}
    assert len(ports) == 2


@pytest.mark.nightly
def test_two_servers_of_a_model(place: Place) -> None:
    line = (
        "ns eval --cluster=mine --benchmarks=./sums.py:2 --num_servers=2 --server_type=generic --model=fake "
        f"--server_gpus=0 --server_entrypoint={SERVED} --output_dir="
    )
    done = place.ns(f"{line}out")
    assert done.returncode == 0, done.stderr
    assert len(rows_of(place.folder / "out/eval-results/own-sums/output-rs1.jsonl")) == 10
    assert {path.name for path in (place.folder / "out").rglob("server*.log")} == {
        "server.log",
        "server-replica1.log",
    }
    done = place.ns(f"{line}jobs --num_jobs=2")
    assert done.returncode == 0, done.stderr + place.logs("eval")
    assert len(rows_of(place.folder / "jobs/eval-results/own-sums/output-rs1.jsonl")) == 10
    for job in place.experiments("eval")[0].jobs[:2]:
        ports = {path.name: path.read_text() for path in Path(job.folder, "ports").glob("[!.]*")}
        assert len(ports) == len(set(ports.values())) == 2
    refused = place.ns(
        "ns eval --cluster=mine --benchmarks=./sums.py --output_dir=two --num_servers=2 --server_type=vllm "
        "--model=fake --server_address=http://127.0.0.1:1"
    )
    assert refused.returncode == 2
    assert "--server_address=http://one:8000,http://two:8000" in refused.stderr


def test_term_saves_and_the_same_command_goes_on(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(0.4), process=True)
    words = evaluation(server, "--num_jobs=2 ++max_concurrent_requests=1").split()[1:]
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *words], cwd=place.folder, env={**os.environ, **place.env}
    ) as process:
        deadline = time.monotonic() + 300
        while len(server.records) < 5 or not all(job.handle for job in place.experiments("eval")[0].jobs):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
    assert set(place.ended("eval").values()) <= {"cancelled", "failed"}
    server.script = answers()
    before = len(server.records)
    assert 5 <= before < 30
    done = place.ns(*[evaluation(server, "--num_jobs=2 ++max_concurrent_requests=1")])
    assert done.returncode == 0, done.stderr + place.logs("eval")
    assert len(server.records) == 30


def test_there_are_no_numbers_where_a_job_failed(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(), process=True)
    words = evaluation(server, "--num_jobs=3").replace("--model=fake", "--model=fake ++server.max_retries=0")
    folder = place.folder / "out/eval-results/own-sums"
    folder.mkdir(parents=True)
    (folder / "output-rs1.jsonl").mkdir()
    failed = place.ns(words)
    assert failed.returncode != 0
    assert "job own-sums-rs1 failed" in failed.stderr
    assert "output-rs1.jsonl.done" in failed.stdout + failed.stderr + place.logs("eval")
    assert not (place.folder / "out/metrics.json").exists()
    (folder / "output-rs1.jsonl").rmdir()
    assert place.ns(words).returncode == 0
    assert (place.folder / "out/metrics.json").is_file()


def test_a_failed_job_is_a_failed_command(place: Place, fake_server: FakeServerFactory) -> None:
    done = place.ns("ns run_cmd --cluster=mine bash -c", "echo said; exit 3")
    assert done.returncode == 3
    assert "said" in done.stdout
    assert "exit code 3" in done.stderr


def test_a_command_is_told_where_server_and_sandbox_are(place: Place) -> None:
    code = (
        'exec 3<>"/dev/tcp/$NEMO_SKILLS_SANDBOX_HOST/$NEMO_SKILLS_SANDBOX_PORT" && '
        'echo "$NEMO_SKILLS_SERVER_ADDRESS $NEMO_SKILLS_OPENAI_BASE_URL $NEMO_SKILLS_OPENAI_MODEL" "$@"'
    )
    done = place.ns(
        "ns run_cmd --with_sandbox --server_type=generic --model=fake --server_gpus=0 "
        f"--server_entrypoint={SERVED} bash -c",
        code,
        *("x", "--flag=1", "a 'b' \"c\" $d"),
    )
    assert done.returncode == 0, done.stderr
    address, base_url, *rest = done.stdout.splitlines()[-1].split(" ", 3)
    assert address.startswith("http://127.0.0.1:")
    assert base_url == f"{address}/v1"
    assert rest == ["fake", "--flag=1 a 'b' \"c\" $d"]


def test_keys_given_as_values_stand_in_no_file(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers(), process=True)
    key = "sk-very-secret-0123456789"
    done = place.ns(evaluation(server, f"--num_jobs=2 ++server.api_key={key}"))
    assert done.returncode == 0, done.stderr
    assert any(record.headers.get("authorization") == f"Bearer {key}" for record in server.records)
    held = [file for file in place.folder.rglob("*") if file.is_file() and key.encode() in file.read_bytes()]
    assert held == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "ns eval --cluster=box --benchmarks=./sums.py --server_type=vllm --model=m --output_dir=/out",
            "--server_gpus",
        ),
        (
            "ns eval --cluster=box --benchmarks=./sums.py --server_type=vllm --model=m --server_gpus=1 --output_dir=/o",
            "/o is not below a mount",
        ),
        (
            "ns generate --cluster=box --input_file=/data/none.jsonl --server_type=vllm --model=/data/m "
            "--server_gpus=1 --output_dir=/data/out ++prompt_config=generic/math",
            "There is no input file",
        ),
        ("ns run_cmd --cluster=mine", "No command is given"),
        ("ns run_cmd --cluster=bare --container=vlm true", "'vlm'; did you mean 'vllm'"),
        ("ns prepare_data ./sums.py --cluster=box --data_dir=/data", "do not see"),
        ("ns prepare_data gsm8k --cluster=box", "--data_dir: the containers of cluster 'box' do not see"),
        (
            "ns eval --benchmarks=./sums.py --server_type=vllm --model=m --server_gpus=1 --num_jobs=0",
            "--num_jobs=0",
        ),
        ("ns plan list", "submits nothing, so there is no plan"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_submitted(place: Place, line: str, message: str) -> None:
    (place.folder / "shared").mkdir()
    place.config(
        "box",
        "executor: slurm\ncontainers: {nemo-skills: /i.sqsh, vllm: /v.sqsh, sandbox: /i.sqsh}\n"
        f"skip_hf_home_check: true\nmounts: ['{place.folder}/shared:/data']",
    )
    place.config("bare", "executor: slurm")
    done = place.ns(line)
    assert done.returncode != 0
    assert message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (place.folder / "jobs").exists()


def test_results_are_known_by_the_names_that_jobs_have_for_them(place: Place) -> None:
    place.config("inside", f"executor: local\ncontainers:\n  vllm: /x\nmounts: ['{place.folder}:/ws']")
    write(place.folder / "out/gsm8k/output.jsonl", [{"id": 1, "symbolic_correct": True, "predicted_answer": "1"}])
    done = place.ns("ns summarize_results /ws/out --cluster=inside")
    assert done.returncode == 0, done.stderr
    assert json.loads((place.folder / "out/metrics.json").read_text())["gsm8k"]["pass@1"]["num_entries"] == 1


def test_a_plan_shows_jobs_scripts_and_settings_and_touches_nothing(place: Place) -> None:
    place.config("slurm", "executor: slurm\npartition: gpu")
    words = (
        "--cluster=slurm --benchmarks=./sums.py:2 --server_type=vllm --model=/m/x --server_gpus=2 --num_jobs=1 "
        "--output_dir=out --dependent_jobs=2"
    )
    before = sorted(place.folder.rglob("*"))
    shown = place.ns(f"ns plan eval {words} --show_scripts")
    assert shown.returncode == 0, shown.stderr
    assert (
        shown.stdout == place.ns(f"ns eval {words} --dry_run --show_scripts").stdout or "#SBATCH" in shown.stdout
    )
    for text in (
        "#SBATCH --partition=gpu",
        "--gpus-per-node=2",
        "{server.address}",
        "2 to do of 2",
        "seed 0",
        " summarize_results …\n",
    ):
        assert text in shown.stdout
    assert sorted(place.folder.rglob("*")) == before


def test_the_scripts_shown_are_those_submitted(place: Place) -> None:
    line = "ns run_cmd --cluster=mine --expname=same --log_dir=logs"
    shown = place.ns(f"{line} --dry_run --show_scripts true").stdout
    assert place.ns(f"{line} true").returncode == 0
    experiment = place.experiments("same")[0]
    [job] = experiment.jobs
    files = dict(re.findall(r"^==> \S+/(\S+) <==\n(.*?)(?=\n==> |\Z)", shown, re.DOTALL | re.MULTILINE))
    assert {"job.sh", "main.sh"} <= files.keys()
    stamp = re.search(rf"/same/([^/\s]+)/{job.name}/job\.sh", shown)[1]
    for name, text in files.items():
        there = Path(job.folder, name).read_text()
        assert text.replace(stamp, experiment.stamp).rstrip("\n") == there.rstrip("\n"), name


def test_the_slurm_jobs_shown_have_the_names_of_those_submitted(place: Place) -> None:
    place.config("slurm", "executor: slurm\njob_name_prefix: 'me-'")
    shown = place.ns("ns run_cmd --cluster=slurm --expname=same --dry_run --show_scripts true").stdout
    assert re.search(r"--job-name=.*\bsame\b", shown), shown


def test_containers_and_mounts_without_containers_are_noted(place: Place) -> None:
    line = "ns run_cmd --cluster=mine --run_after=one,two --dry_run --allow_missing_dependency"
    asked = "--main_container=/i.sqsh --mount_paths=/tmp:/t"
    done = place.ns(f"{line} {asked} true")
    assert done.returncode == 0, done.stderr
    assert "--main_container, --mount_paths: no effect" in done.stderr
    assert "no effect" not in place.ns(f"{line} true").stderr
    for name in ("one", "two"):
        assert f"there is no experiment '{name}'" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_server_ends_with_its_terminal(place: Place, number: signal.Signals) -> None:
    words = (
        "start_server --cluster=mine --with_sandbox --server_type=generic --model=fake --server_gpus=0 "
        f"--expname=serve --server_entrypoint={SERVED}"
    ).split()
    screen, end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *words],
        cwd=place.folder,
        env={**os.environ, **place.env},
        stdout=end,
        stderr=end,
    ) as process:
        os.close(end)
        seen = b""
        while b"serves on" not in seen:
            seen += os.read(screen, 4096)
        if number == signal.SIGHUP:
            os.close(screen)
        process.send_signal(number)
        process.send_signal(number)
        if number == signal.SIGTERM:
            with contextlib.suppress(OSError):  # EIO: the command has ended
                while piece := os.read(screen, 4096):
                    seen += piece
            os.close(screen)
        code = process.wait(300)
        # What is said to a terminal that is gone may fail.
        assert (code == 0 and b"Stopped." in seen) or number == signal.SIGHUP, seen.decode(errors="replace")
    assert place.ended("serve") == {"serve": "cancelled"}


@pytest.mark.parametrize("word", ["--dry_run", "++dry_run=true", "--explain"])
def test_who_only_asks_submits_nothing(place: Place, fake_server: FakeServerFactory, word: str) -> None:
    server = fake_server(answers(), process=True)
    done = place.ns(evaluation(server, "--num_jobs=2", word))
    assert done.returncode == 0, done.stderr
    assert "fake" in done.stdout
    assert server.records == []
    assert place.experiments("eval") == []


def test_a_rehearsal_proves_the_pipeline_and_finds_what_is_wrong(place: Place) -> None:
    words = (
        "--benchmarks=./sums.py:2 --num_chunks=2 --server_type=vllm --model=/m/x --server_gpus=8 --output_dir=out"
    )
    good = place.ns(f"ns rehearse eval --cluster=mine {words}")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "nothing is wrong" in good.stdout
    assert "summarize" in good.stdout
    assert not (place.folder / "out").exists()
    place.config(
        "bad",
        f"executor: local\ncontainers: {{nemo-skills: {place.folder}/no.sqsh, vllm: {place.folder}/no.sqsh}}\n"
        f"mounts: ['{place.folder}/missing:/data', '{place.folder}:{place.folder}']\nrequired_env_vars: [NOT_SET_HERE]",
    )
    bad = place.ns(f"ns rehearse eval --cluster=bad {words}")
    assert bad.returncode == 1
    for text in ("NOT_SET_HERE", "missing", "no.sqsh", "HF_HOME"):
        assert text in bad.stdout, bad.stdout


def test_code_of_the_model_runs_in_the_sandbox_of_the_job(place: Place, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=reckon)
    (place.folder / "sums.py").write_text(BENCHMARK.replace("generic/math", "openmath/tir"))
    code = "--with_sandbox ++code_execution=true ++code_tags=qwen"
    done = place.ns(evaluation(server, "--num_jobs=2", code).replace("sums.py:3", "sums.py:2"))
    assert done.returncode == 0, done.stderr + place.logs("eval")
    rows = rows_of(place.folder / "out/eval-results/own-sums/output-rs1.jsonl")
    assert [row["symbolic_correct"] for row in rows] == [True] * 10
    for job in place.experiments("eval")[0].jobs[:2]:
        assert Path(job.folder, "ports/sandbox").is_file()
        assert "NEWSKILLS_SANDBOX_TOKEN" in Path(job.folder, "main.sh").read_text()


def test_containers_and_mounts_of_each_command(place: Place) -> None:
    (place.folder / "shared").mkdir()
    place.config(
        "box",
        "executor: slurm\ncontainers: {nemo-skills: /i.sqsh, vllm: /v.sqsh, sandbox: /s.sqsh}\n"
        f"skip_hf_home_check: true\nmounts: ['{place.folder}/shared:/data', '{place.folder}/data:/prepared']",
    )
    (place.folder / "sums.py").write_text(BENCHMARK.replace("generic/math", "openmath/tir"))
    line = (
        "ns plan eval --cluster=box --benchmarks=./sums.py --server_type=vllm --model=/data/m --server_gpus=2 "
        "--output_dir=/data/out --with_sandbox ++code_execution=true ++code_tags=qwen --show_scripts"
    )
    steps = steps_of(place.ns(line).stdout)
    assert "--container-image=/v.sqsh" in steps["server"]
    assert "--container-image=/i.sqsh" in steps["main"]
    assert f"{place.folder}/shared:/data" in steps["main"]
    assert "--container-image=/s.sqsh" in steps["sandbox"]
    assert ":/data" not in steps["sandbox"]
    assert '"input_file": "/prepared/own-sums/test.jsonl"' in place.ns(line).stdout
    steps = steps_of(place.ns(line, "--sandbox_mounts", "/x:/only:ro", "--server_container=/other.sqsh").stdout)
    assert "/x:/only:ro" in steps["sandbox"]
    assert ":/data" not in steps["sandbox"]
    assert "--container-image=/other.sqsh" in steps["server"]
    steps = steps_of(place.ns(line, "--keep_mounts_for_sandbox", "--mount_paths=/more:/extra").stdout)
    assert ":/data" in steps["sandbox"]
    assert "/more:/extra" in steps["main"]


def steps_of(shown: str) -> dict[str, str]:
    """Command → what starts it in job.sh."""
    return dict(re.findall(r"start (?:client|server) (\w+) \\\n(.*?bash \"\$job_folder\")", shown, re.DOTALL))


@pytest.mark.nightly
@pytest.mark.local_model
@pytest.mark.parametrize("key", [pytest.param("", marks=pytest.mark.nightly), "++server.api_key=own-k3y"])
def test_nobody_else_can_use_a_server_beside_its_job(place: Place, local_model: Path, key: str) -> None:
    write(place.folder / "in.jsonl", [{"question": "Say hi."}])
    line = (
        f"ns generate --server_type=llamacpp --model={local_model} --output_dir=out --input_file=in.jsonl "
        f"++prompt_config=generic/default ++inference.tokens_to_generate=4 {key}"
    )
    done = place.ns(f"{line} --cluster=mine --num_jobs=-1 --expname=keyed --preprocess_cmd=env")
    assert done.returncode == 0, done.stderr
    [job] = place.experiments("keyed")[0].jobs
    sent = re.search(r"^NEWSKILLS_LLAMACPP_KEY=(\S+)$", place.logs("keyed"), re.M)
    assert sent is not None
    assert (sent[1] == "own-k3y") if key else len(sent[1]) == 32
    files = [file for file in Path(job.folder).rglob("*") if file.is_file() and file.suffix != ".log"]
    assert [file for file in files if sent[1] in file.read_text()] == []
    here = place.ns(f"{line} --rerun_done")
    assert here.returncode == 0, here.stderr
    assert rows_of(place.folder / "out/output.jsonl")[0]["generation"]


def test_python_passes_on_what_earlier_calls_returned(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place.folder)
    here = {"executor": "none", "job_dir": str(place.folder / "jobs")}
    one = run_cmd(cluster=here, expname="one", command="true")
    two = run_cmd(cluster=here, expname="two", command="true", run_after=one)
    last = run_cmd(  # type: ignore[call-arg]
        cluster=here,
        expname="last",
        command="true",
        _task_dependencies=[one, None, two],
        _reuse_exp=one,
    )
    assert last.id == place.experiments("last")[0].id
    with pytest.raises(NewskillsError, match="to run after 'nobody'"):
        run_cmd(cluster=here, expname="last", command="true", run_after=[one, "nobody"])


def test_options_that_take_several_values_before_a_command_of_ones_own(place: Place) -> None:
    line = "ns run_cmd --cluster=mine --dry_run --with_sandbox --sandbox_env_overrides"
    wrong = place.ns(f"{line} A=b C=d true")
    assert wrong.returncode != 0
    assert "Repeat an option" in wrong.stderr
    assert place.ns(f"{line} A=b --sandbox_env_overrides C=d true").returncode == 0


def test_logs_and_mounts_as_containers_know_them(place: Place) -> None:
    place.config(
        "box",
        "executor: slurm\ncontainers: {nemo-skills: /i.sqsh, sandbox: /i.sqsh}\nskip_hf_home_check: true\n"
        f"mounts: ['{place.folder}:/ws']",
    )
    done = place.ns(
        "ns run_cmd --cluster=box --dry_run --show_scripts --log_dir=/ws/logs --with_sandbox "
        "--sandbox_mounts=/tmp/a:/b:ro,/tmp/c:/d true"
    )
    assert done.returncode == 0, done.stderr
    assert f"#SBATCH --output={place.folder}/logs/" in done.stdout
    assert "--container-mounts=/tmp/a:/b:ro,/tmp/c:/d:ro," in done.stdout
    told = place.ns(
        "ns run_cmd --cluster=box --dry_run --show_scripts --with_sandbox --sandbox_mounts=/tmp/c:/d:rw true"
    )
    assert "--container-mounts=/tmp/c:/d," in told.stdout
