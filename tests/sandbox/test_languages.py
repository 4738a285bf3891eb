# SPDX-License-Identifier: Apache-2.0
"""Every language, in real processes: input, exit codes, signals, errors of compilers, limits of output."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sandbox.driver import drive

from newskills.base.protocols import Execution
from newskills_sandbox.errors import ExecutionRefusedError, SettingsError
from newskills_sandbox.inside.query import split_statements
from newskills_sandbox.languages import LANGUAGES, language, toolchain_folders
from newskills_sandbox.languages.headers import precompile_header
from newskills_sandbox.languages.language import installation_paths
from newskills_sandbox.settings import SandboxSettings

Result = dict[str, Any]


def run(*executions: Result, **settings: Any) -> list[Result]:
    given = [{"timeout": 10, **execution} for execution in executions]
    return drive(sys.executable, {"preload": [], **settings}, given)


def code(language: str, text: str, **fields: Any) -> Result:
    return {"language": language, "code": text, **fields}


def request(name: str, text: str = "", config: SandboxSettings | None = None, **fields: Any) -> dict[str, Any]:
    return language(name).request(Execution(code=text, language=name, **fields), config or SandboxSettings())


def of(results: Sequence[Result], *keys: str) -> list[Any]:
    return [[each[key] for key in keys] if len(keys) > 1 else each[keys[0]] for each in results]


def test_each_language_is_found_by_its_name() -> None:
    assert list(LANGUAGES) == ["ipython", "python", "python3", "pypy3", "shell", "cpp", "lean4", "sql"]
    assert [name for name, each in LANGUAGES.items() if each.stateful] == ["ipython"]
    with pytest.raises(ExecutionRefusedError, match=r"Unknown language 'pyhton'; did you mean .*'python'"):
        language("pyhton")


def test_a_script_has_input_arguments_and_an_exit_code() -> None:
    results = run(
        code("python", "print(input() + '!'); import sys; print(sys.argv, __name__)", std_input="hello\nrest"),
        code("python3", "import sys; sys.exit(3)"),
        code("python", "import sys; sys.exit('said so')"),
        code("python", "1/0"),
        code("python", "print(1\nprint(2)"),
        code("python", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
        code("python", "print('x' * 5000)", max_output_characters=100),
        code("python", "while True: pass", timeout=0.3),
    )
    assert of(results[:4], "status", "exit_code") == [["completed", 0], ["completed", 3]] + [["completed", 1]] * 2
    assert results[0]["stdout"] == "hello!\n['main.py'] __main__\n"
    assert results[2]["stderr"] == "said so\n"
    assert "ZeroDivisionError" in results[3]["stderr"]
    assert "SyntaxError" in results[4]["stderr"]
    assert of(results[5:6], "status", "exit_code") == [["crashed", -9]]
    assert results[6]["stdout"] == "x" * 100 + "<output cut>"
    assert results[7]["status"] == "timeout"
    assert results[7]["stderr"] == "Execution timed out after 0.3 seconds\n"


def test_a_shell_script_has_bash_where_it_is_installed_and_says_how_it_ended() -> None:
    results = run(
        code("shell", 'read a; echo "got $a"; echo oops >&2; exit 4', std_input="word\n"),
        code("shell", "kill -SEGV $$"),
        code("shell", "echo fine; true"),
        code("shell", "if then"),
        code("shell", "yes", max_output_characters=10, timeout=0.5),
        code("shell", "x=(1 2 3); echo ${#x[@]}"),
    )
    assert of(results[:4], "status", "exit_code") == [
        ["error", 4],
        ["crashed", -11],
        ["completed", 0],
        ["error", 2],
    ]
    assert (results[0]["stdout"], results[0]["stderr"]) == ("got word\n", "oops\n")
    assert "syntax error" in results[3]["stderr"].lower()
    assert (results[4]["status"], results[4]["stdout"]) == ("timeout", "y\ny\ny\ny\ny\n<output cut>")
    if shutil.which("bash"):
        assert results[5]["stdout"] == "3\n"


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")
def test_the_header_of_all_is_compiled_once_and_read_where_it_fits() -> None:
    making = precompile_header()
    if making is not None:
        making.join()
    program = "#include <bits/stdc++.h>\nint main(){ std::cout << std::gcd(4, 6); }"
    looking = f"echo '{program}' > a.cpp; g++ -O2 -std=c++%d -H a.cpp -o a 2>&1 | grep -c '^!.*gch'; ./a"
    results = run(
        *(code("shell", looking % standard, timeout=60) for standard in (17, 20)),
        code("cpp", program, timeout=60),
    )
    assert [each["stdout"].split() for each in results] == [["1", "2"], ["0", "2"], ["2"]], results


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here")
def test_a_cpp_program_is_compiled_and_run() -> None:
    results = run(
        code("cpp", "#include <iostream>\nint main(){int a,b;std::cin>>a>>b;std::cout<<a+b;}", std_input="40 2"),
        code("cpp", "int main(){ return undeclared; }", max_output_characters=2000),
        code("cpp", "int main(){ return 7; }"),
        code("cpp", "int main(){ for(;;); }", timeout=2),
        code("cpp", "#include <cstdlib>\nint main(){ abort(); }"),
    )
    assert of(results, "status", "exit_code") == [
        ["completed", 0],
        ["error", 1],
        ["error", 7],
        ["timeout", -9],
        ["crashed", -6],
    ]
    assert results[0]["stdout"] == "42"
    assert "program.cpp:1:" in results[1]["stderr"]
    assert "'undeclared' was not declared" in results[1]["stderr"].replace("‘", "'").replace("’", "'")


def test_pypy_runs_or_says_how_to_get_it() -> None:
    (result,) = run(code("pypy3", "import platform; print(platform.python_implementation())"))
    if shutil.which("pypy3"):
        assert result["stdout"] == "PyPy\n"
    else:
        assert result["raised"] == "ExecutionRefusedError"
        assert "`apt-get install pypy3`" in result["text"]


def test_what_a_program_needs_is_shown_but_never_a_whole_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for place in ("opt/pypy/bin/pypy3", "home/bin/pypy3", "home/.local/bin/pypy3", "home/tools/wrapper"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "opt/pypy/bin/pypy3")

    def shown(place: str) -> list[str]:
        found = installation_paths(str(tmp_path / place))
        return [str(Path(each).relative_to(tmp_path)) for each in found]

    assert installation_paths(None) == installation_paths("/usr/bin/env") == []
    assert shown("opt/pypy/bin/pypy3") == ["opt/pypy/bin/pypy3", "opt/pypy"]
    assert shown("link") == ["link", "opt/pypy"]
    assert shown("home/bin/pypy3") == ["home/bin/pypy3", "home/bin/pypy3"]
    assert shown("home/.local/bin/pypy3") == ["home/.local/bin/pypy3", "home/.local/bin/pypy3"]
    assert shown("home/tools/wrapper") == ["home/tools/wrapper", "home/tools"]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    with sqlite3.connect(folder / "deep" / "a b?.sqlite") as connection:
        connection.execute("CREATE TABLE t (number, text)")
        rows = [(1, "x;y"), (2.5, b"\x00\xff"), (None, 9e999), (2**62, "ü"), (3, "")]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.execute("UPDATE t SET text = CAST(X'66FF6F' AS TEXT) WHERE number = 3")
    connection.close()
    (tmp_path / "outside.sqlite").write_bytes((folder / "deep" / "a b?.sqlite").read_bytes())
    (folder / "link.sqlite").symlink_to(tmp_path / "outside.sqlite")
    (folder / "broken.sqlite").write_text("no database " * 1000)
    return folder


def test_sql_prints_the_rows_of_each_query_and_changes_nothing(data_dir: Path) -> None:
    database = {"database": "deep/a b?.sqlite"}
    before = {path: path.read_bytes() for path in data_dir.rglob("*.sqlite")}
    results = run(
        code("sql", "SELECT * FROM t; SELECT 1 WHERE 0; SELECT ';' -- the end", **database),
        code("sql", "SELECT 1; SELECT nope FROM t", **database),
        code("sql", "INSERT INTO t VALUES (1, 2)", **database),
        code("sql", "PRAGMA writable_schema=1; DROP TABLE t", **database),
        code("sql", "ATTACH '/data/deep/a b?.sqlite' AS other; DELETE FROM other.t", **database),
        code("sql", "ATTACH '/etc/shadow' AS other; SELECT * FROM other.sqlite_master", **database),
        code("sql", "SELECT load_extension('/lib/x86_64-linux-gnu/libm.so.6')", **database),
        code(
            "sql",
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i FROM r) SELECT COUNT(*) FROM r",
            timeout=0.5,
            **database,
        ),
        code("sql", "", **database),
        code("sql", "SELECT 'a' || char(0)\0", **database),
        data_dir=str(data_dir),
    )
    assert [json.loads(line) for line in results[0]["stdout"].splitlines()] == [
        [[1, "x;y"], [2.5, {"hex": "00ff"}], [None, {"float": "inf"}], [2**62, "ü"], [3, "f\ufffdo"]],
        [],
        [[";"]],
    ]
    assert of(results, "status") == ["completed", *["error"] * 6, "timeout", "completed", "error"]
    assert (results[1]["stdout"], "no such column" in results[1]["stderr"]) == ("[[1]]\n", True)
    assert "readonly" in results[2]["stderr"]
    assert before == {path: path.read_bytes() for path in data_dir.rglob("*.sqlite")}


def test_sql_without_a_database_is_refused_and_a_broken_one_is_no_fault_of_the_query(data_dir: Path) -> None:
    names = (
        "",
        "missing.sqlite",
        "../outside.sqlite",
        "deep/../../outside.sqlite",
        "/etc/passwd",
        "link.sqlite",
        "deep",
    )
    results = run(
        *(code("sql", "SELECT 1", database=name) for name in (*names, "a\0b", "broken.sqlite")),
        data_dir=str(data_dir),
    )
    assert of(results, "raised") == [*["ExecutionRefusedError"] * 8, "SandboxError"]
    assert results[1]["text"] == "There is no database 'missing.sqlite' in the data folder."
    assert results[8]["text"] == "sql could not start: DatabaseError: file is not a database"
    with pytest.raises(ExecutionRefusedError, match="set the sandbox's data_dir"):
        request("sql", database="a")


@given(st.lists(st.sampled_from(["SELECT 1", "'a;b'", "--x;\n", "/*;*/", ";", "\n", '"', "é"])).map("".join))
def test_cutting_into_statements_loses_nothing(text: str) -> None:
    assert text.startswith("".join(split_statements(text)))
    assert not text.removeprefix("".join(split_statements(text))).strip()


LEAN = """#!/bin/sh
echo "path=$LEAN_PATH threads=$1"
shift
if [ -f "$(dirname "$0")/../lib/marker" ]; then echo toolchain; fi
cat "$1"
grep -q false "$1" && { echo "$1:1:8: error: no"; exit 1; }
exit 0
"""
"""Says what it is given, refuses what holds `false`."""


def toolchain(folder: Path) -> Path:
    for name, text in (("bin/lean", LEAN), ("lib/marker", "")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "bin/lean").chmod(0o755)
    return folder / "bin/lean"


@pytest.fixture
def elan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with elan, its shims on PATH and two toolchains."""
    home = tmp_path / "home" / ".elan"
    (home / "bin").mkdir(parents=True)
    for name in ("elan", "lean", "lake"):
        (home / "bin" / name).write_text("#!/bin/sh\necho the shim ran; exit 9\n")
        (home / "bin" / name).chmod(0o755)
    for version in ("v4.9.0", "v4.12.0"):
        toolchain(home / "toolchains" / f"leanprover--lean4---{version}")
    (home / "settings.toml").write_text('default_toolchain = "leanprover/lean4:v4.9.0"\nversion = "12"\n')
    monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("ELAN_HOME", str(home))
    return home


def test_lean_is_run_by_the_toolchain_behind_the_shim_with_its_folder_in_sight(elan: Path) -> None:
    accepted, refused = run(code("lean4", "theorem t : True"), code("lean4", "theorem f : false"))
    assert accepted["stdout"] == "path= threads=-j4\ntoolchain\ntheorem t : True"
    assert of([accepted, refused], "status", "exit_code") == [["completed", 0], ["failed", 1]]
    assert refused["stdout"].endswith("main.lean:1:8: error: no\n")
    assert toolchain_folders(SandboxSettings())[-1] == f"{elan}/toolchains/leanprover--lean4---v4.9.0"
    (elan / "settings.toml").write_text('default_toolchain = "stable"\n')
    assert request("lean4")["steps"][0][0] == f"{elan}/toolchains/leanprover--lean4---v4.12.0/bin/lean"
    assert request("lean4")["unlimited_addresses"]


def test_a_lean_project_has_its_toolchain_and_the_modules_of_its_packages(elan: Path, tmp_path: Path) -> None:
    project, beside = tmp_path / "project", tmp_path / "beside"
    built = [
        project / ".lake/build/lib/lean",
        project / ".lake/packages/mathlib/.lake/build/lib/lean",
        project / ".lake/packages/mono/sub/.lake/build/lib",
        beside / ".lake/build/lib/lean",
    ]
    for folder in built:
        folder.mkdir(parents=True)
    (project / "lakefile.toml").write_text('name = "p"\n')
    (project / "lean-toolchain").write_text("leanprover/lean4:v4.12.0\n")
    packages = [
        {"name": "mathlib", "type": "git", "url": "u", "rev": "r", "subDir": None},
        {"name": "mono", "type": "git", "subDir": "sub"},
        {"name": "beside", "type": "path", "dir": "../beside"},
    ]
    (project / "lake-manifest.json").write_text(json.dumps({"version": "1.1.0", "packages": packages}))
    config = SandboxSettings(lean=str(project))
    path = request("lean4", config=config)["environment"]["LEAN_PATH"].split(":")
    assert [each for each in path if "/lib/lean" in each or "mono" in each] == [str(folder) for folder in built]
    assert set(toolchain_folders(config)) >= {str(project), str(beside)}
    (result,) = run(code("lean4", "theorem t : True"), lean=str(project))
    assert result["stdout"].startswith(f"path={':'.join(path)} threads=-j4\ntoolchain\n")
    (project / "lean-toolchain").write_text("leanprover/lean4:v9\n")
    with pytest.raises(SettingsError, match="`elan toolchain install leanprover/lean4:v9`"):
        toolchain_folders(config)
    (project / "lake-manifest.json").write_text("{")
    (project / "lean-toolchain").unlink()
    with pytest.raises(ExecutionRefusedError, match="`lake update` writes a new one"):
        request("lean4", config=config)


def test_a_named_lean_is_taken_and_a_missing_one_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = toolchain(tmp_path / "lean")
    for place in (program, program.parents[1]):
        (result,) = run(code("lean4", "x"), lean=str(place))
        assert (result["status"], "toolchain" in result["stdout"]) == ("completed", True)
    with pytest.raises(SettingsError, match="not a Lean program, toolchain"):
        toolchain_folders(SandboxSettings(lean=str(tmp_path)))
    monkeypatch.setenv("ELAN_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ExecutionRefusedError, match=r"Lean is not installed on this machine; install it with elan"
    ):
        request("lean4")
    assert toolchain_folders(SandboxSettings())[-1:] != [str(tmp_path)]
