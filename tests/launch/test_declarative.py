# SPDX-License-Identifier: Apache-2.0
"""The rules of NeMo-Skills' declarative pipelines, and ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import newskills
from newskills.base.errors import ConfigError, NewskillsError, UnknownNameError
from newskills.base.plan import Pipeline as PlannedPipeline
from newskills.base.plan import Ref
from newskills.launch.declarative import Command, CommandGroup, HardwareConfig, Pipeline, Submission
from newskills.launch.scripts.clients import GenerationClientScript
from newskills.launch.scripts.script import BaseJobScript, SandboxScript, ServerScript
from newskills.launch.validate import check_pipeline
from newskills.models.kinds import LLAMACPP_KEY
from newskills_sandbox.variables import TOKEN_VARIABLE

BOXES = {
    "executor": "slurm",
    "job_dir": "/jobs",
    "containers": {"nemo-skills": "/ns.sqsh", "vllm": "/vllm.sqsh", "sandbox": "/ns.sqsh"},
    "mounts": ["/models:/models", "/data:/data"],
    "env_vars": ["HF_HOME=/data/hf"],
}


def echo(text: str = "echo hi", **settings: Any) -> Command:
    return Command(BaseJobScript(text), name=settings.pop("name", "main"), **settings)


def group(*commands: Command, **settings: Any) -> CommandGroup:
    return CommandGroup(list(commands) or [echo()], **settings)


def submitted(
    *jobs: Any, cluster: dict[str, Any] | None = None, sequential: bool = False, **settings: Any
) -> Submission:
    pipeline = Pipeline("exp", cluster or {"executor": "none"}, list(jobs), **settings)
    got = []
    answer = pipeline.run(submit=lambda submission: got.append(submission) or "handle", sequential=sequential)
    assert answer == "handle"
    return got[0]


def plan(*jobs: Any, **settings: Any) -> PlannedPipeline:
    return submitted(*jobs, **settings).pipeline


def test_the_example_of_two_models_of_different_size() -> None:
    """One job: 8B server and client on 1 GPU, 32B server and client on 4."""
    groups = []
    for size, gpus in (("8b", 1), ("32b", 4)):
        server = ServerScript("vllm", f"/models/{size}", num_gpus=gpus)
        client = GenerationClientScript(output_dir=f"/data/{size}", input_file="/data/in.jsonl", servers=[server])
        groups.append(
            CommandGroup(
                [Command(server, "vllm", f"server-{size}"), Command(client, name=f"client-{size}")], name=size
            )
        )
    submission = submitted({"name": "both", "groups": groups}, cluster=BOXES)
    check_pipeline(submission.pipeline, submission.cluster, submission.environ)
    (job,) = submission.pipeline.jobs
    assert [made.hardware.num_gpus for made in job.groups] == [1, 4]
    assert [command.role for command in job.commands()] == ["server", "client"] * 2
    assert Ref("server-32b", "address", "--server_address=") in job.groups[1].commands[1].script.argv
    assert job.groups[1].commands[0].paths == ("/models/32b",)


def test_names_are_those_of_the_public_api() -> None:
    for name in ("Pipeline", "Command", "CommandGroup", "HardwareConfig", "ServerScript", "SandboxScript"):
        assert name in newskills.__all__
    assert newskills.Pipeline is Pipeline
    assert newskills.GenerationClientScript is GenerationClientScript


def test_dependencies_are_jobs_experiments_or_handles() -> None:
    class Handle:
        name = "earlier"

    first = {"name": "first", "group": group()}
    second = {
        "name": "second",
        "group": group(),
        "dependencies": [first, "other-exp", Handle(), 123, None, "first"],
    }
    made = plan(first, second, run_after=["before-all"])
    assert made.jobs[0].run_after == ("before-all",)
    assert made.jobs[1].depends_on == ("first",)
    assert made.jobs[1].run_after == ("before-all", "other-exp", "earlier", "123")
    assert plan(first, {"name": "b", "group": group(), "dependencies": first}).jobs[1].depends_on == ("first",)
    with pytest.raises(ConfigError, match="is not a job"):
        plan({"name": "a", "group": group(), "dependencies": [3.5]})


def test_sequential_jobs_wait_for_each_other() -> None:
    jobs = [{"name": name, "group": group()} for name in "abc"]
    assert [job.depends_on for job in plan(*jobs, sequential=True).jobs] == [(), ("a",), ("b",)]
    assert [job.depends_on for job in plan(*jobs).jobs] == [(), (), ()]


def test_dependencies_come_first() -> None:
    late = {"name": "late", "group": group()}
    early = {"name": "early", "group": group(), "dependencies": [late]}
    with pytest.raises(ConfigError, match="'early' depends on job 'late', which is not listed before it"):
        plan(early, late)
    late["dependencies"] = [early]
    with pytest.raises(ConfigError, match="not listed before it"):
        plan(early, late)
    itself = {"name": "x", "group": group()}
    itself["dependencies"] = [itself]
    with pytest.raises(ConfigError, match="not listed before it"):
        plan(itself)


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        ({"group": CommandGroup([echo()])}, "has no name"),
        ({"name": "j"}, "needs a CommandGroup"),
        ({"name": "j", "groups": []}, "needs a CommandGroup"),
        ({"name": "j", "group": [echo()]}, "needs a CommandGroup"),
        ({"name": "j", "group": CommandGroup([])}, "has no commands"),
        ({"name": "j", "group": group(), "groups": [group()]}, "both 'group' and 'groups'"),
        ({"name": "j", "group": group(), "dependecies": []}, "'dependecies'; did you mean 'dependencies'"),
        ({"name": "j", "group": group(echo(), echo())}, "Two commands of job 'j' have the name 'main'"),
        ({"name": "j", "group": group(Command("echo", name="x"))}, "of type str, not a script object"),
        (
            {"name": "j", "groups": [group(log_dir="/a"), group(echo(name="b"), log_dir="/b")]},
            "different log_dir: /a, /b",
        ),
        (
            {"name": "j", "group": group(echo(avoid_nemo_run_code=True, force_nemo_run_code=True))},
            "avoid and force",
        ),
        (
            {"name": "j", "group": group(Command(BaseJobScript("x", het_group_index=1)))},
            "het_group_index=1, but is in group 0",
        ),
    ],
)
def test_jobs_that_make_no_sense(job: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        plan(job)


def test_jobs_of_one_name() -> None:
    with pytest.raises(ConfigError, match="Two jobs have the name 'a'"):
        plan({"name": "a", "group": group()}, {"name": "a", "group": group()})


def test_unknown_containers() -> None:
    with pytest.raises(UnknownNameError, match="'vlm'; did you mean 'vllm'"):
        plan({"name": "a", "group": group(echo(container="vlm"))}, cluster=BOXES)


def test_functions_are_called_once_per_submission() -> None:
    calls = []
    script = BaseJobScript(lambda: calls.append(1) or "echo")
    pipeline = Pipeline(
        "exp",
        {"executor": "none"},
        [{"name": name, "group": CommandGroup([Command(script, name="main")])} for name in "ab"],
    )
    made = pipeline.submission().pipeline
    assert len(calls) == 1
    assert [job.commands()[0].script.argv for job in made.jobs] == [("bash", "-c", "echo")] * 2
    pipeline.submission()
    assert len(calls) == 2


def test_functions_are_called_when_everything_is_known() -> None:
    """A text made late names the server's group by the place that it has in this job."""
    server = ServerScript("vllm", "/m", num_gpus=1)
    client = BaseJobScript(lambda: f"curl {server.get_address()}")
    groups = [group(Command(server, name="far")), group(Command(client, name="main"))]
    made = plan({"name": "j", "groups": groups})
    assert made.jobs[0].groups[1].commands[0].script.env["NEWSKILLS_HOST_FAR"] == Ref("far", "host")


def test_scripts_in_two_groups_share_no_state() -> None:
    server, client = ServerScript("vllm", "/m", num_gpus=1), BaseJobScript(lambda: "x")
    shared = group(Command(server, name="server"), Command(client, name="main"))
    alone = plan({"name": "a", "group": shared}).jobs[0]
    both = plan({"name": "a", "group": shared}, {"name": "b", "groups": [group(echo(name="other")), shared]})
    assert both.jobs[0] == alone
    assert both.jobs[1].groups[1].commands == alone.groups[0].commands
    twice = [group(Command(server, name="s1")), group(Command(server, name="s2"), echo())]
    with pytest.raises(ConfigError, match="'s1' and 's2' of job 'j' run the same server script"):
        plan({"name": "j", "groups": twice})


def test_environments_are_merged() -> None:
    script = BaseJobScript(lambda: ("env", {"environment": {"A": "script", "B": "script"}}))
    command = Command(script, name="main", environment={"A": "command", "C": "command"})
    made = plan({"name": "j", "group": group(command)}).jobs[0].commands()[0].script
    assert made.env == {"A": "script", "B": "script", "C": "command"}


def test_keys_in_environments_travel_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_TOKEN", raising=False)
    submission = submitted({"name": "j", "group": group(echo(environment={"MY_TOKEN": "t-0123456789", "A": "1"}))})
    script = submission.pipeline.jobs[0].commands()[0].script
    assert (script.env, script.secrets) == ({"A": "1"}, ("MY_TOKEN",))
    assert submission.environ["MY_TOKEN"] == "t-0123456789"
    assert "t-0123456789" not in repr(submission)
    assert "MY_TOKEN" not in os.environ
    two = [echo(environment={"MY_TOKEN": value}, name=value) for value in ("one", "two")]
    with pytest.raises(ConfigError, match="MY_TOKEN has one value"):
        plan({"name": "j", "group": group(*two)})


def test_mounts_and_working_folders() -> None:
    commands = [
        echo(name="own", mounts=["/a:/b"], workdir="/w"),
        echo(name="none", mounts=[]),
        echo(name="away", avoid_nemo_run_code=True),
        echo(name="code", workdir="/w", force_nemo_run_code=True),
        Command(SandboxScript(), "sandbox", "sandbox"),
        Command(SandboxScript(keep_mounts=True), "sandbox", "open"),
        Command(SandboxScript(), "sandbox", "some", mounts=["/a:/b"]),
    ]
    made = {command.name: command for command in plan({"name": "j", "group": group(*commands)}).jobs[0].commands()}
    assert (made["own"].mounts, made["own"].workdir) == (("/a:/b",), "/w")
    assert (made["none"].mounts, made["none"].workdir) == ((), None)
    assert (made["away"].workdir, made["code"].workdir) == ("/", None)
    assert [made[name].mounts for name in ("sandbox", "open", "some")] == [(), None, ("/a:/b",)]


def test_each_submission_with_a_sandbox_has_a_token_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    sandbox = SandboxScript()
    client = GenerationClientScript(output_dir="o", input_file="i", sandbox=sandbox)
    job = {"name": "j", "group": group(Command(sandbox, name="sandbox"), Command(client, name="main"))}
    one, two = submitted(job), submitted(job)
    assert all(command.script.secrets == (TOKEN_VARIABLE,) for command in one.pipeline.jobs[0].commands())
    assert one.environ[TOKEN_VARIABLE] != two.environ[TOKEN_VARIABLE]
    assert TOKEN_VARIABLE not in submitted({"name": "j", "group": group()}).environ


def test_a_server_beside_its_clients_has_a_key_and_one_that_is_the_work_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(LLAMACPP_KEY, raising=False)
    server = ServerScript("llamacpp", "smollm2", num_gpus=0)
    client = GenerationClientScript(output_dir="o", input_file="i", servers=[server])
    job = {"name": "j", "group": group(Command(server, name="server"), Command(client, name="main"))}
    one, two = submitted(job), submitted(job)
    assert all(command.script.secrets == (LLAMACPP_KEY,) for command in one.pipeline.jobs[0].commands())
    assert one.environ[LLAMACPP_KEY] != two.environ[LLAMACPP_KEY]
    alone = {"name": "j", "group": group(Command(server, name="server", role="client"))}
    assert LLAMACPP_KEY not in submitted(alone).environ
    monkeypatch.setenv(LLAMACPP_KEY, "mine")
    assert submitted(alone).pipeline.jobs[0].commands()[0].script.secrets == (LLAMACPP_KEY,)


def test_hardware_and_logs() -> None:
    hardware = HardwareConfig(partition="p", account="a", num_gpus=2, num_nodes=3, sbatch_kwargs={"x": 1})
    made = plan({"name": "j", "group": group(hardware=hardware, log_dir="/logs", name="g")}).jobs[0]
    assert (made.groups[0].hardware, made.groups[0].name, made.log_dir) == (hardware, "g", "/logs/j")


def test_ray_around_clients() -> None:
    job = {"name": "j", "group": group(hardware=HardwareConfig(num_nodes=3))}
    script = plan(job, with_ray=True).jobs[0].commands()[0].script
    assert script.argv[1:3] == ("-m", "newskills.launch.ray_node")
    assert script.argv[-3:] == ("bash", "-c", "echo hi")
    assert script.all_nodes
    assert script.port == 0


def test_what_is_said_about_the_submission() -> None:
    submission = submitted({"name": "j", "group": group()}, reuse_code_exp="old", skip_hf_home_check=True)
    assert (submission.reuse_code_exp, submission.skip_hf_home_check) == ("old", True)
    assert submission.cluster.executor == "none"


def test_a_dry_run_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    got: list[Any] = []
    pipeline = Pipeline("exp", {"executor": "none"}, [{"name": "j", "group": group()}])
    pipeline.run(dry_run=True, log_dir="logs", submit=got.append)
    assert got[0].dry_run
    assert got[0].log_dir == "logs"
    assert list(tmp_path.iterdir()) == []
    assert dict(os.environ) == before


SERVE = """
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"it answers")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder of one's own for jobs and records, and for the code."""
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    code = tmp_path / "work"
    code.mkdir()
    monkeypatch.chdir(code)
    return {"executor": "none", "job_dir": str(tmp_path / "jobs")}


def test_a_pipeline_runs(here: dict[str, str], tmp_path: Path) -> None:
    """A server at a free port, a text and a list of words that ask it, and a job after them."""
    server = BaseJobScript(port=0, ready="/")
    server.inline = [sys.executable, "-c", SERVE, str(server.port)]
    url = f"http://{server.hostname_ref()}:{server.port}/a"
    asking = group(
        Command(server, name="server", role="server"),
        Command(BaseJobScript(f"{sys.executable} -c '{ASK}' {url} > '{tmp_path}/one'"), name="text"),
        Command(BaseJobScript([sys.executable, "-c", ASK, url]), name="words"),
    )
    first = {"name": "ask", "group": asking}
    strange = f'it\'s "quoted" $HOME `date` {tmp_path}'
    writing = group(Command(BaseJobScript([sys.executable, "-c", WRITE, f"{tmp_path}/two", strange]), name="main"))
    experiment = Pipeline("exp", here, [first, {"name": "after", "group": writing, "dependencies": [first]}]).run()
    assert (tmp_path / "one").read_text() == "it answers\n"
    assert (tmp_path / "two").read_text() == strange
    assert "it answers" in Path(experiment.jobs[0].logs, "words.log").read_text()
    later = Pipeline("later", here, [{"name": "j", "group": group(), "dependencies": [experiment]}]).run()
    assert later.id.startswith("later/")


def test_a_job_that_fails_is_told(here: dict[str, str]) -> None:
    with pytest.raises(NewskillsError, match=r"Some jobs of exp/.* failed: 'bad' failed\. See: ns logs exp/"):
        Pipeline("exp", here, [{"name": "bad", "group": group(echo("exit 3"))}]).run()


def test_a_dry_run_of_a_whole_submission_writes_nothing(here: dict[str, str], tmp_path: Path) -> None:
    experiment = Pipeline("exp", here, [{"name": "j", "group": group()}]).run(dry_run=True)
    assert [job.handle for job in experiment.jobs] == [""]
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
