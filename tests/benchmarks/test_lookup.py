# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.benchmarks import expand_benchmarks, get_benchmark, get_group, list_all, list_benchmarks
from newskills.benchmarks.data import load_rows, prepare

CONSTANTS = """
METRICS_TYPE = "math"
EVAL_SPLIT = "dev"
GENERATION_ARGS = "++prompt_config=generic/math ++eval_type=math ++inference.temperature=0.6 ++eval_config.timeout=5"
NUM_SAMPLES = 4
REQUIRES_SANDBOX = True
"""
MINE = """
from newskills.base.benchmark import Benchmark
BENCHMARK = Benchmark(name="mine", category="own", title="mine")
OTHER = Benchmark(name="other", category="own", title="other")
WRONG = 5
"""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NEMO_SKILLS_EXTRA_BENCHMARK_MAP", "NEMO_SKILLS_EXTRA_DATASETS"):
        monkeypatch.delenv(name, raising=False)


def package(folder: Path, name: str, constants: str = CONSTANTS) -> Path:
    place = folder / name
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(constants)
    (place / "dev.jsonl").write_text('{"problem": "1+1", "expected_answer": "2"}\n')
    return place


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("gsm8k", "gsm8k"),
        ("GSM8K", "gsm8k"),
        ("math", "hendrycks_math"),
        ("MATH", "hendrycks_math"),
        ("hendrycks-math", "hendrycks_math"),
        ("math_500", "math-500"),
        ("math500", "math-500"),
        ("aime2024", "aime24"),
        ("gpqa_diamond", "gpqa"),
        ("olympiad_bench", "olympiadbench"),
        ("minerva-math", "minerva_math"),
        ("reasoning_gym.chain-sum", "reasoning-gym.chain_sum"),
        ("bfcl_v3.simple", "bfcl_v3.simple_python"),
        ("bfcl_v3.java", "bfcl_v3.simple_java"),
        ("bfcl_v3.javascript", "bfcl_v3.simple_javascript"),
    ],
)
def test_names_and_aliases(asked: str, name: str) -> None:
    assert get_benchmark(asked).name == name


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gsm8k'") as caught:
        get_benchmark("gsmk8")
    assert "ns list benchmarks" in caught.value.hint


def test_names_with_commas_are_told_how_to_be_separated() -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_benchmark("gsm8k,svamp")
    assert "gsm8k svamp" in caught.value.hint


def test_lists_by_category() -> None:
    assert "gpqa" in {entry.name for entry in list_benchmarks("science")}
    assert {entry.category for entry in list_benchmarks("science")} == {"science"}
    assert list_benchmarks("math_natural") == list_benchmarks("math-natural")
    assert {"m-arena-hard", "mgsm"} <= {entry.name for entry in list_benchmarks("multilingual")}
    assert {"aai", "bfcl_v3"} <= {entry.name for entry in list_all("group") if entry.members}
    with pytest.raises(UnknownNameError, match="math-natural"):
        list_benchmarks("math-naturals")


def test_a_file_and_an_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    assert get_benchmark("./mine.py").name == "mine"
    assert get_benchmark("mine.py::OTHER").name == "other"
    with pytest.raises(ConfigError, match="is not a benchmark"):
        get_benchmark("mine.py::WRONG")
    with pytest.raises(ConfigError, match="There is no file"):
        get_benchmark("./none.py")
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(ConfigError, match="named BENCHMARK"):
        get_benchmark("./empty.py")


GROUP_FILE = """
from newskills.base.benchmark import Benchmark, Group
A = Benchmark(name="a", category="own", title="a", split="dev", defaults={"inference.temperature": 1, "x": 1})
B = Benchmark(name="both.b", category="own", title="b")
GROUP = Group(name="both", category="own", title="both", members={
    "./both.py::A": {"samples": 3, "defaults": {"x": 2}}, "./both.py::B": {}, "gsm8k": {"prompt": "generic/default"}
})
WRONG = Group(name="wrong", category="own", title="wrong", members={"gsm8k": {"promt": "generic/default"}})
"""


def test_groups_expand_to_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "both.py").write_text(GROUP_FILE)
    monkeypatch.chdir(tmp_path)
    first, second, third = expand_benchmarks("./both.py")
    assert [one.name for one in (first, second, third)] == ["both.A", "both.B", "both.gsm8k"]
    assert (first.samples, first.split) == (3, "dev")
    assert first.defaults == {"inference.temperature": 1, "x": 2}
    assert (third.prompt, third.data, third.sources) == (
        "generic/default",
        "gsm8k",
        get_benchmark("gsm8k").sources,
    )
    with pytest.raises(ConfigError, match=r"is a group of 3 benchmarks: both\.A, both\.B, both\.gsm8k"):
        get_benchmark("both.py::GROUP")
    with pytest.raises(ConfigError, match="sets 'promt' of gsm8k, which benchmarks do not have"):
        expand_benchmarks("both.py::WRONG")
    assert [one.name for one in expand_benchmarks("gsm8k")] == ["gsm8k"]
    assert get_group("gsm8k") is None
    assert get_group("nothing") is None


FAMILY_FILE = """
from newskills.base.benchmark import Benchmark, Group
BENCHMARKS = tuple(Benchmark(name=f"family.{one}", category="own", title=one) for one in ("de", "fr"))
GROUP = Group(name="family", category="own", title="family", members={"family.de": {}, "family.fr": {"samples": 2},
              "deeper/other.py": {}})
"""


def test_a_group_of_the_benchmarks_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "place" / "deeper").mkdir(parents=True)
    (tmp_path / "place" / "family.py").write_text(FAMILY_FILE)
    (tmp_path / "place" / "deeper" / "other.py").write_text(MINE.replace('"mine"', '"third"'))
    monkeypatch.chdir(tmp_path)
    for name in ("place/family.py", "place/family.py::GROUP", str(tmp_path / "place" / "family.py")):
        found = [(one.name, one.samples) for one in expand_benchmarks(name)]
        assert found == [("family.de", 0), ("family.fr", 2), ("family.other", 0)]
    assert get_benchmark("place/family.py::family.de").title == "de"
    assert [one.name for one in expand_benchmarks("place/family.py::family.fr")] == ["family.fr"]
    with pytest.raises(UnknownNameError, match=r"family\.it"):
        get_benchmark("place/family.py::family.it")


def test_a_file_without_a_group_stands_for_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two.py").write_text(FAMILY_FILE.partition("GROUP =")[0])
    monkeypatch.chdir(tmp_path)
    assert [one.name for one in expand_benchmarks("two.py")] == ["family.de", "family.fr"]


def test_a_file_with_several_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "several.py").write_text(MINE.replace("WRONG = 5", "BENCHMARKS = (OTHER,)"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="has several benchmarks: mine, other"):
        get_benchmark("./several.py")


def test_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_benchmarks.py").write_text(MINE)
    info = tmp_path / "theirs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[newskills.benchmarks]\ntheir-own = their_benchmarks:BENCHMARK\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert get_benchmark("their_own").name == "mine"


def test_a_folder_of_constants(tmp_path: Path) -> None:
    folder = package(tmp_path, "their-set")
    benchmark = get_benchmark(str(folder))
    assert (benchmark.name, benchmark.prompt, benchmark.grader, benchmark.metric) == (
        "their-set",
        "generic/math",
        "math",
        "math",
    )
    assert benchmark.defaults == {"inference.temperature": 0.6}
    assert benchmark.grader_config == {"timeout": 5}
    assert (benchmark.split, benchmark.samples, benchmark.needs_sandbox) == ("dev", 4, True)
    assert load_rows(benchmark) == folder / "dev.jsonl"
    with pytest.raises(DataError, match="no split 'test'; the choices are dev"):
        load_rows(benchmark, "test")
    assert prepare(benchmark, data_dir=tmp_path / "data").folder == folder
    assert not (tmp_path / "data").exists()


def test_older_constants(tmp_path: Path) -> None:
    text = (
        'DATASET_GROUP="math"\nMETRICS_TYPE="math"\nPROMPT_CONFIG="generic/math"\nEVAL_ARGS="++eval_type=math"\n'
    )
    benchmark = get_benchmark(str(package(tmp_path, "old", text)))
    assert (benchmark.category, benchmark.prompt, benchmark.grader) == ("math", "generic/math", "math")


def test_constants_that_name_a_judge(tmp_path: Path) -> None:
    text = (
        'METRICS_TYPE="math"\n'
        'JUDGE_PIPELINE_ARGS={"generation_type": "math_judge", "model": "gpt-x", "server_type": "openai"}\n'
        'JUDGE_ARGS="++prompt_config=judge/hle ++generation_key=judgement ++inference.temperature=0.2"\n'
    )
    assert get_benchmark(str(package(tmp_path, "judged", text))).judge == Judge(
        prompt="judge/hle",
        kind="math_judge",
        defaults={"inference.temperature": 0.2},
        model="gpt-x",
        server_type="openai",
    )
    assert get_benchmark(str(package(tmp_path, "usual", 'METRICS_TYPE="math"\n'))).judge is None


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ("", "does not set METRICS_TYPE"),
        ('METRICS_TYPE="m"\nGENERATION_ARGS="++x"\n', "not of the form"),
        ("(", "Cannot"),
    ],
)
def test_broken_constants(tmp_path: Path, constants: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        get_benchmark(str(package(tmp_path, "broken", constants)))


def test_a_map_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = package(tmp_path, "anywhere")
    assert get_benchmark("their_set", extra={"their-set": str(folder)}).name == "their_set"
    assert get_benchmark("x", extra=json.dumps({"x": str(folder)})).folder == str(folder)
    (tmp_path / "map.json").write_text(json.dumps({"x": "anywhere"}))
    assert get_benchmark("x", extra=tmp_path / "map.json").folder == str(folder)
    monkeypatch.setenv("NEMO_SKILLS_EXTRA_BENCHMARK_MAP", str(tmp_path / "map.json"))
    assert get_benchmark("x").folder == str(folder)
    with pytest.raises(ConfigError, match="There is no file"):
        get_benchmark("y", extra=tmp_path / "none.json")
    with pytest.raises(ConfigError, match="not JSON"):
        get_benchmark("y", extra='{"x": 5}')


def test_folders_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "one", "their_set")
    package(tmp_path / "two" / "group", "member")
    monkeypatch.setenv(
        "NEMO_SKILLS_EXTRA_DATASETS", os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two")])
    )
    assert get_benchmark("their-set").samples == 4
    assert get_benchmark("group.member").samples == 4


def test_a_name_in_two_places_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = package(tmp_path / "one", "gsm8k")
    monkeypatch.setenv("NEMO_SKILLS_EXTRA_DATASETS", str(tmp_path / "one"))
    with pytest.raises(ConfigError, match=r"several benchmarks: the built-in 'gsm8k' and the folder"):
        get_benchmark("gsm8k")
    new = package(tmp_path / "one", "new")
    assert get_benchmark("new", extra={"new": str(new)}).folder == str(new)
    with pytest.raises(ConfigError, match="several benchmarks"):
        get_benchmark("new", extra={"new": str(folder)})


def test_a_name_with_a_slash_may_be_an_alias(tmp_path: Path) -> None:
    assert get_benchmark("openai-evals/jee-math").name == "openai-evals.jee-math"
    with pytest.raises((ConfigError, DataError, UnknownNameError)):
        get_benchmark(f"{tmp_path}/openai-evals")


def test_a_member_that_nothing_knows_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "ours-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[newskills.benchmarks]\nours = our_benchmarks:GROUP\n")
    listed = 'GROUP = Group(name="ours", category="own", title="ours", members={"ours.missing": {}})'
    (tmp_path / "our_benchmarks.py").write_text(f"from newskills.base.benchmark import Group\n{listed}\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("ours", "ours.missing"):
        with pytest.raises(UnknownNameError, match=r"ours\.missing"):
            expand_benchmarks(name)
