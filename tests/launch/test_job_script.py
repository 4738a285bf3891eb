# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.launch.places import TwoGroups, job, processes, python, server

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Ready, Ref, Script
from newskills.launch.job_script import render_scripts
from newskills.launch.place import JobFolder

GOLDEN = Path(__file__).parent / "golden"
FOLDER = JobFolder(path="/jobs/exp/judge's job", logs="/logs/judge", code="/nemo_run/code")
TWO_GROUPS = Job(
    name="judge",
    groups=(
        CommandGroup(
            name="big",
            hardware=HardwareConfig(num_nodes=2, num_gpus=8),
            commands=(
                Command(
                    name="judge-server",
                    role="server",
                    container="vllm",
                    script=Script(
                        argv=("vllm", "serve", "/models/a b", Ref("judge-server", "port", "--port=")),
                        env={
                            "MASTER_ADDR": Ref("judge-server", "node"),
                            "MEETING": Ref("judge-server", "meeting"),
                            "VLLM_LOGGING": "it's $HOME",
                        },
                        secrets=("HF_TOKEN",),
                        port=0,
                        ready=Ready(patience=600.0),
                        setup="pip install -q 'vllm>=1'",
                        all_nodes=True,
                    ),
                ),
            ),
        ),
        CommandGroup(
            name="small",
            commands=(
                Command(name="sandbox", role="server", script=Script(argv=("ns", "sandbox"), port=6000)),
                Command(
                    name="eval",
                    script=Script(
                        argv=(
                            "python",
                            "-m",
                            "newskills.run",
                            Ref("judge-server", "address", "++server.base_url=", "/v1"),
                            "++question=What's\n$up?",
                            "",
                        ),
                        env={"SANDBOX": Ref("sandbox", "host")},
                    ),
                ),
            ),
        ),
    ),
)


@pytest.mark.parametrize("name", ["job.sh", "judge-server.sh", "judge-server.setup.sh", "sandbox.sh", "eval.sh"])
def test_the_text_is_the_golden_one(name: str) -> None:
    """Set NEWSKILLS_GOLDEN=write to write the files anew, and read the difference. What a script has of a file that
    all scripts share stands as the name of that file."""
    text = render_scripts(TWO_GROUPS, FOLDER, TwoGroups())[name]
    for shared in files("newskills.launch").joinpath("bash").iterdir():
        text = text.replace(shared.read_text("utf-8"), f"# <{shared.name}>\n")
    if os.environ.get("NEWSKILLS_GOLDEN") == "write":
        (GOLDEN / name).write_text(text, "utf-8")
    assert text == (GOLDEN / name).read_text("utf-8")


def test_every_script_is_bash() -> None:
    for name, text in render_scripts(TWO_GROUPS, FOLDER, TwoGroups()).items():
        if name.endswith(".sh"):
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_the_plan_stands_beside_the_scripts() -> None:
    plan = json.loads(render_scripts(TWO_GROUPS, FOLDER, TwoGroups())["plan.json"])
    assert [group["name"] for group in plan["groups"]] == ["big", "small"]


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)
PRINT = "import sys, os, json; print(json.dumps([sys.argv[1:], os.environ['VALUE'], os.environ['OTHER']]))"


@settings(max_examples=25)
@given(words=st.lists(WORDS, max_size=12), value=WORDS, around=st.tuples(WORDS, WORDS))
def test_every_word_reaches_the_program_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], value: str, around: tuple[str, str]
) -> None:
    folder = tmp_path_factory.mktemp('it\'s a "folder" $HOME')
    own = Ref("it", "host", *around)
    main = Command(
        name="it", script=Script(argv=python(PRINT, *words, own), env={"VALUE": value, "OTHER": own}, port=0)
    )
    for name, text in render_scripts(job("j", main), _here(folder), processes(folder)).items():
        (folder / name).write_text(text, "utf-8")
    (folder / "ports").mkdir()
    out = subprocess.run(["bash", folder / "it.sh"], capture_output=True, check=True).stdout
    resolved = around[0] + "127.0.0.1" + around[1]
    assert json.loads(out) == [[*words, resolved], value, resolved]


@pytest.mark.parametrize(
    "word", ["", "-n", "~", "*", "$(date)", "`date`", "a\\", "'", '"', "!x", "\\\n", "é😀", "-"]
)
def test_words_that_shells_like_to_change(tmp_path: Path, word: str) -> None:
    main = Command(name="it", script=Script(argv=python("import sys; print(ascii(sys.argv[1:]))", word)))
    (tmp_path / "it.sh").write_text(
        render_scripts(job("j", main), _here(tmp_path), processes(tmp_path))["it.sh"], "utf-8"
    )
    out = subprocess.run(["bash", tmp_path / "it.sh"], capture_output=True, text=True, check=True).stdout
    assert out == ascii([word]) + "\n"


def test_variables_of_the_user_are_not_those_of_the_scripts(tmp_path: Path) -> None:
    mine = dict.fromkeys(
        ("name", "host", "port", "folder", "logs", "code", "signal", "names", "argv", "why"), "mine"
    )
    shown = f"import os; print([os.environ[name] for name in {sorted(mine)!r}])"
    main = Command(name="it", script=Script(argv=python(shown, Ref("it", "port")), port=0))
    texts = render_scripts(job("j", main), _here(tmp_path), processes(tmp_path))
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    subprocess.run(["bash", tmp_path / "job.sh"], env={**os.environ, **mine}, check=True, capture_output=True)
    assert (tmp_path / "logs/it.log").read_text() == str(["mine"] * len(mine)) + "\n"


def test_names_that_differ_only_in_signs_are_kept_apart(tmp_path: Path) -> None:
    names = ("a-b", "a_b", "a.b", "a_2d_b")
    commands = [Command(name=name, role="server", script=Script(argv=("true",), port=0)) for name in names]
    refs = tuple(Ref(name, "port") for name in names)
    main = Command(name="it", script=Script(argv=("echo", *refs)))
    text = render_scripts(job("j", main, *commands), _here(tmp_path), processes(tmp_path))["it.sh"]
    used = text.partition("job_argv=(")[2].partition(")")[0].split()
    assert len(set(used)) == len(names) + 1


def test_an_old_bash_and_another_shell_are_told_apart(tmp_path: Path) -> None:
    text = render_scripts(
        job("j", Command(name="it", script=Script(argv=("true",)))), _here(tmp_path), processes(tmp_path)
    )
    (tmp_path / "job.sh").write_text(text["job.sh"])
    (tmp_path / "old.sh").write_text(text["job.sh"].replace("${BASH_VERSION:-none}", "4.4.20", 1))
    old = subprocess.run(["bash", tmp_path / "old.sh"], capture_output=True, text=True, check=False)
    assert (old.returncode, "needs bash 5.1" in old.stderr) == (1, True)
    if shell := shutil.which("dash"):
        other = subprocess.run([shell, tmp_path / "job.sh"], capture_output=True, text=True, check=False)
        assert (other.returncode, "needs bash 5.1" in other.stderr) == (1, True)
    assert not (tmp_path / "job.started").exists()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Command(name="a b", script=Script(argv=("true",))), "name that a file can have"),
        (Command(name="a", script=Script(argv=())), "nothing to run"),
        (Command(name="a", script=Script(argv=("x\0y",))), "NUL"),
        (Command(name="a", script=Script(argv=("x",), env={"A-B": "1"})), "not the name of a variable"),
        (Command(name="a", script=Script(argv=("x", Ref("a", "port")))), "has no port"),
        (Command(name="a", script=Script(argv=("x", Ref("a", "meeting")))), "has no port"),
        (Command(name="job", script=Script(argv=("x",))), "job.sh, whose name is taken"),
    ],
)
def test_what_cannot_be_written_down(tmp_path: Path, command: Command, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        render_scripts(job("j", command), _here(tmp_path), processes(tmp_path))


@pytest.mark.parametrize("attribute", ["rank", "meeting", "meeting_port"])
def test_where_a_command_meets_is_its_own_affair(tmp_path: Path, attribute: str) -> None:
    two = job("j", server(), Command(name="it", script=Script(argv=("x", Ref("server", attribute)))))
    with pytest.raises(
        ConfigError, match=f"refers to the {attribute} of 'server', which other commands cannot use"
    ):
        render_scripts(two, _here(tmp_path), processes(tmp_path))


def test_the_bash_of_the_room_travels_with_the_package() -> None:
    found = {file.name for file in files("newskills.launch").joinpath("bash").iterdir()}
    assert found >= {"job.sh", "port.sh", "await.sh", "setup.sh"}


def _here(folder: Path) -> JobFolder:
    return JobFolder(path=str(folder), logs=str(folder / "logs"))
