# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Pipeline, Ref, Script
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.names import MAX_NAME_CHARS, is_file_name, is_variable, looks_secret
from newskills.launch.validate import check_pipeline, pipeline_problems

NONE = ClusterConfig()
BARE = ClusterConfig(executor="slurm", name="bare", job_dir="/jobs")
BOXES = ClusterConfig(
    executor="slurm",
    name="boxes",
    job_dir="/jobs",
    containers={"nemo-skills": "/img/ns.sqsh", "vllm": "/img/vllm.sqsh"},
    mounts=["/host/data:/data", "/host/hf:/hf"],
    env_vars=["HF_HOME=/hf"],
    timeouts={"batch": "04:00:00"},
)


def command(
    name: str = "main",
    *argv: str | Ref,
    role: str = "client",
    container: str | None = None,
    mounts: tuple[str, ...] | None = None,
    workdir: str | None = None,
    paths: tuple[str, ...] = (),
    **script: Any,
) -> Command:
    return Command(
        name=name,
        script=Script(argv=argv or ("true",), **script),
        role=role,
        container=container,
        mounts=mounts,
        workdir=workdir,
        paths=paths,
    )


def job(name: str = "j", *commands: Command, hardware: HardwareConfig | None = None, **settings: Any) -> Job:
    group = CommandGroup(name="g", commands=commands or (command(),), hardware=hardware or HardwareConfig())
    return Job(name=name, groups=(group,), **settings)


def found(
    *jobs: Job,
    cluster: ClusterConfig = BARE,
    environ: dict[str, str] | None = None,
    name: str = "exp",
    **options: Any,
) -> list[str]:
    return pipeline_problems(Pipeline(name=name, jobs=jobs), cluster, environ or {}, **options)


def only(sentence: str, *jobs: Job, **settings: Any) -> None:
    """There is one problem, and it says so."""
    answers = found(*jobs, **settings)
    assert len(answers) == 1, answers
    assert sentence in answers[0]


def test_a_sound_pipeline() -> None:
    server = command("server", "serve", Ref("server", "port"), Ref("server", "rank"), role="server", port=0)
    client = command("main", "ask", Ref("server"), Ref("server", "node", before="n="))
    assert found(job("a", server, client), job("b", depends_on=("a",))) == []
    check_pipeline(Pipeline(name="exp", jobs=(job(),)), NONE, {})


def test_all_problems_are_told_together() -> None:
    jobs = (job("a b"), job("b", depends_on=("x",)), job("c", hardware=HardwareConfig(num_nodes=0)))
    with pytest.raises(ConfigError) as error:
        check_pipeline(Pipeline(name="exp", jobs=jobs), BARE, {})
    lines = str(error.value).splitlines()
    assert lines[0] == "3 errors; nothing was submitted:"
    assert len(lines) == 4
    assert all(line.startswith("- ") and line.endswith(".") for line in lines[1:])
    with pytest.raises(ConfigError, match=r"\AA job has the name 'a b'"):
        check_pipeline(Pipeline(name="exp", jobs=(job("a b"),)), BARE, {})


def test_names_that_collide() -> None:
    only("Two jobs have the name 'a'", job("a"), job("a"))
    only("3 commands of job 'a' have the name 'x'", job("a", command("x"), command("x"), command("x")))
    groups = tuple(CommandGroup(name="g", commands=(command(name),)) for name in "xy")
    only("Two groups of job 'a' have the name 'g'", Job(name="a", groups=groups))
    only("the name of the job's own script", job("a", command("job")))
    only("2 jobs would write the same log, /l/main.log", job("a", log_dir="/l"), job("b", log_dir="/l"))
    assert found(job("a", log_dir="/l/a"), job("b", log_dir="/l/b"), job("c")) == []


@pytest.mark.parametrize("name", ["", "..", ".x", "-x", "a/b", "a b", "a\n", "a'b", "$(x)", "é", "x" * 101])
def test_names_that_are_no_file_names(name: str) -> None:
    only("A job has the name", job(name))
    only("A command of job 'a' has the name", job("a", command(name)))
    only("The pipeline has the name", job(), name=name)


@given(st.text(max_size=MAX_NAME_CHARS + 5))
def test_good_names_need_no_quotes_and_stay_in_their_folder(name: str) -> None:
    if is_file_name(name):
        assert 0 < len(name) <= MAX_NAME_CHARS
        assert name.isascii()
        assert name[0] not in ".-"
        assert not set(name) & set(" /\\'\"$`;&|<>()*?[]{}!#~\n\t\0:,%")


@given(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]{0,99}", fullmatch=True).filter(str.isascii))
def test_ordinary_names_are_good(name: str) -> None:
    assert is_file_name(name)


def test_names_of_variables() -> None:
    assert [n for n in ("A", "_a1", "1a", "a-b", "", "é", "A\n", "A=") if is_variable(n)] == ["A", "_a1"]
    secret = [
        "HF_TOKEN",
        "OPENAI_API_KEY",
        "MY_KEY_2",
        "token",
        "DB_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "X_SECRET",
    ]
    plain = ["TOKENIZERS_PARALLELISM", "HF_HOME", "KEYBOARD", "MONKEY", "SSH_KEY_PATH", "MAX_TOKENS"]
    assert [n for n in secret + plain if looks_secret(n)] == secret


def test_dependencies() -> None:
    only(
        "depends on 'bb', which is not a job of the pipeline; did you mean 'b'",
        job("a", depends_on=("bb",)),
        job("b"),
    )
    circle = (job("a", depends_on=("b",)), job("b", depends_on=("a",)), job("c", depends_on=("a",)), job("d"))
    only("wait for each other in a circle: a, b.", *circle)
    only("circle: a.", job("a", depends_on=("a",)))


def test_references() -> None:
    server = command("server", role="server", port=0)
    only("refers to 'serve'; did you mean 'server'", job("a", server, command("main", Ref("serve"))))
    only(
        "refers to 'server', which runs in job 'a': references work only within one job",
        job("a", server, command()),
        job("b", command("main", Ref("server"))),
    )
    dumb = command("server", role="server")
    for attribute in ("address", "host", "port"):
        only(f"refers to the {attribute} of 'server'", job("a", dumb, command("main", Ref("server", attribute))))
    assert found(job("a", dumb, command("main", Ref("server", "node")))) == []
    only("rank of 'server'", job("a", server, command("main", env={"R": Ref("server", "rank")})))
    first = command("first", Ref("second"), role="server", port=0)
    second = command("second", Ref("first"), Ref("second", "port"), role="server", port=0)
    only("wait for each other to answer: first, second", job("a", first, second, command()))


def test_a_job_has_a_client() -> None:
    only("has no client", job("a", command("server", role="server")))
    only("has no groups", Job(name="a", groups=()))
    assert "has no jobs" in found()[0]
    assert len(found(Job(name="a", groups=(CommandGroup(name="g", commands=()),)))) == 2


@pytest.mark.parametrize(
    ("hardware", "sentence"),
    [
        ({"num_nodes": 0}, "asks for 0 nodes; the minimum is 1"),
        ({"num_gpus": -1}, "asks for -1 GPUs; the minimum is 0"),
        ({"num_tasks": 0}, "asks for 0 tasks"),
        ({"time_limit": "soon"}, "time_limit: 'soon' is not a time limit"),
        ({"time_min": "1h"}, "time_min: '1h' is not a time limit"),
        (
            {"time_min": "02:00:00", "time_limit": "1:00:00"},
            "time_min 02:00:00 is more than the time limit 1:00:00",
        ),
        ({"time_min": "05:00:00", "partition": "batch"}, "more than the time limit 04:00:00"),
        ({"partition": "a b"}, "partition 'a b' is not a name"),
        ({"account": ""}, "account '' is not a name"),
        ({"sbatch_kwargs": {"a b": 1}}, "'a b', which is not an option"),
        ({"sbatch_kwargs": {"comment": "x\n#SBATCH --uid=0"}}, "sbatch_kwargs.comment has a line break"),
        ({"sbatch_kwargs": {"gres": ["x"]}}, "sbatch_kwargs.gres must be text"),
    ],
)
def test_hardware(hardware: dict[str, Any], sentence: str) -> None:
    only(sentence, job("a", hardware=HardwareConfig(**hardware)), cluster=BOXES)


def test_one_machine_has_one_node() -> None:
    two = HardwareConfig(num_nodes=2)
    assert found(job(hardware=two)) == []
    only("executor none has one machine", job(hardware=two), cluster=NONE)


def test_ports() -> None:
    a, b = (command(name, role="server", port=5000) for name in "ab")
    only("'a' and 'b' of job 'j' both want port 5000", job("j", a, b, command()))
    groups = (CommandGroup(name="x", commands=(a, command())), CommandGroup(name="y", commands=(b,)))
    assert found(Job(name="j", groups=groups)) == []
    only("both want port 5000", Job(name="j", groups=groups), cluster=NONE)
    only("70000 is not a port", job("j", command(port=70000)))


def test_scripts() -> None:
    only("nothing to run", job("j", command("main", "")))
    only("'A B' is not the name of a variable", job("j", command(env={"A B": "1"})))
    only("NUL", job("j", command("main", "a\0b")))
    only("0 tasks per node", job("j", command(tasks_per_node=0)))
    only("needs MY_KEY, which is not set", job("j", command(secrets=("MY_KEY",))))
    assert found(job("j", command(secrets=("MY_KEY",))), environ={"MY_KEY": "x"}) == []
    only("both a secret and a plain", job("j", command(secrets=("A",), env={"A": "1"})), environ={"A": "1"})


def test_no_secret_stands_in_a_plan() -> None:
    environ = {"OPENAI_API_KEY": "sk-0123456789"}
    leaking = job("j", command("main", "--key=sk-0123456789"))
    answers = found(leaking, environ=environ)
    assert len(answers) == 1
    assert "value of OPENAI_API_KEY" in answers[0]
    assert "sk-0" not in answers[0]
    only(
        "value of MINE",
        job("j", command("main", "x=longenough", secrets=("MINE",))),
        environ={"MINE": "longenough"},
    )
    only("contains the value of A_TOKEN", job("j", command(env={"A_TOKEN": "abc"})))


def test_missing_variables() -> None:
    cluster = msgspec.structs.replace(BARE, required_env_vars=["ONE", "TWO"])
    only("requires ONE, TWO, which are not set", job(), cluster=cluster)


def test_containers() -> None:
    only("'vlm'; did you mean 'vllm'", job("j", command(container="vlm")), cluster=BOXES, skip_hf_home_check=True)
    assert found(job("j", command(container="vllm"))) == [], "a cluster without containers runs bare processes"
    only("'vlm'; did you mean 'vllm'", job("j", command(container="vlm")))
    only("img.sqsh must be an absolute path", job("j", command(container="img.sqsh")), cluster=BOXES)


def test_paths_are_compared_by_components() -> None:
    inside = command(container="vllm", paths=("/data", "/data/x", "/nemo_run/code/y"))
    assert found(job("j", inside), cluster=BOXES) == []
    for path in ("/data2", "/data/../x", "/", "/host/data"):
        only(f"{path} is not below a mount", job("j", command(container="vllm", paths=(path,))), cluster=BOXES)
        only(f"{path} is not below a mount", job("j", command(container="vllm"), outputs=(path,)), cluster=BOXES)
        assert found(job("j", command(paths=(path,)), outputs=(path,)), cluster=BOXES) == []
        assert found(job("j", command(container="vllm", paths=(path,))), cluster=NONE) == []
    only("must be absolute", job("j", command(container="vllm", paths=("data/x",))), cluster=BOXES)
    only("must be absolute", job("j", command(container="vllm", workdir="x")), cluster=BOXES)
    off = {"NEMO_SKILLS_DISABLE_MOUNT_CHECK": "1"}
    assert found(job("j", command(container="vllm", paths=("/x",))), cluster=BOXES, environ=off) == []


def test_own_mounts_stand_instead_of_the_clusters() -> None:
    own = command(container="vllm", mounts=("/a:/b",), paths=("/b/x",))
    assert found(job("j", own), cluster=BOXES) == []
    only(
        "/data is not below a mount",
        job("j", command(container="vllm", mounts=(), paths=("/data",))),
        cluster=BOXES,
    )
    only("no mounts", job("j", command(container="vllm", mounts=()), outputs=("/data",)), cluster=BOXES)
    only("mount 'x'", job("j", command(container="vllm", mounts=("x",))), cluster=BOXES)


def test_hf_home() -> None:
    in_box = job("j", command(container="vllm"))
    without = msgspec.structs.replace(BOXES, env_vars=[])
    only("HF_HOME is not in env_vars", in_box, cluster=without)
    assert found(in_box, cluster=without, skip_hf_home_check=True) == []
    skipping = msgspec.structs.replace(without, skip_hf_home_check=True)
    assert found(in_box, cluster=skipping) == []
    only("HF_HOME is not in", in_box, cluster=skipping, skip_hf_home_check=False)
    assert found(job(), cluster=without) == [], "no container, no need"
    elsewhere = msgspec.structs.replace(BOXES, env_vars=["HF_HOME"])
    only("HF_HOME=/hf2 is not below a mount", in_box, cluster=elsewhere, environ={"HF_HOME": "/hf2"})
