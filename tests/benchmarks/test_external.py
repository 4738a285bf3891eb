# SPDX-License-Identifier: Apache-2.0
"""Benchmark packages of NeMo-Skills: constants, groups, judges, and scripts that make the data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks, get_benchmark, get_group
from newskills.benchmarks.data import load_rows, prepare

MATH = 'METRICS_TYPE = "math"\n'


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EXTRA_BENCHMARK_MAP", "EXTRA_DATASETS"):
        for brand in ("NEMO_SKILLS", "NEWSKILLS"):
            monkeypatch.delenv(f"{brand}_{name}", raising=False)


def package(folder: Path, constants: str, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(constants)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_judges(tmp_path: Path) -> None:
    folder = package(
        tmp_path / "judged",
        MATH
        + 'JUDGE_PIPELINE_ARGS = {"generation_type": "math_judge", "model": "gpt-x", "server_type": "openai",\n'
        '    "server_address": "https://j/v1", "server_gpus": 8}\n'
        'JUDGE_ARGS = "++prompt_config=judge/hle ++generation_key=verdict ++inference.reasoning_effort=low"\n',
    )
    assert get_benchmark(str(folder)).judge == Judge(
        prompt="judge/hle",
        kind="math_judge",
        generation_key="verdict",
        defaults={"inference.reasoning_effort": "low"},
        model="gpt-x",
        server_type="openai",
        server_address="https://j/v1",
    )
    folder = package(tmp_path / "args", MATH + 'JUDGE_ARGS = "++inference.temperature=0.5"\n')
    assert get_benchmark(str(folder)).judge == Judge(defaults={"inference.temperature": 0.5})
    folder = package(tmp_path / "none", MATH + 'JUDGE_PIPELINE_ARGS = {}\nJUDGE_ARGS = ""\n')
    assert get_benchmark(str(folder)).judge is None


def test_runs(tmp_path: Path) -> None:
    text = MATH + 'NUM_CHUNKS = 4\nNUM_SAMPLES = 0\nGENERATION_MODULE = "nemo_skills.inference.generate"\n'
    benchmark = get_benchmark(str(package(tmp_path / "chunked", text)))
    assert (benchmark.chunks, benchmark.samples, benchmark.solver) == (4, 0, "chat")
    own = get_benchmark(str(package(tmp_path / "own", MATH + 'GENERATION_MODULE = "my.module::Solver"\n')))
    assert own.solver == "my.module::Solver"


def test_a_metric_without_a_grader_of_its_name(tmp_path: Path) -> None:
    assert get_benchmark(str(package(tmp_path / "a", 'METRICS_TYPE = "generic"\n'))).grader == ""
    assert get_benchmark(str(package(tmp_path / "b", 'METRICS_TYPE = "evalplus"\n'))).grader == "evalplus"


@pytest.mark.parametrize(
    ("program", "kind", "model"),
    [
        ('"judge_step_fn": "nemo_skills.pipeline.judges.comet_judge::make"', "comet", "Unbabel/XCOMET-XXL"),
        ('"judge_step_fn": "nemo_skills.pipeline.judges.nvembed_judge::make"', "nvembed", "nvidia/NV-Embed-v2"),
        ('"generation_module": "nemo_skills.inference.llm_math_judge"', "math_judge", ""),
        ('"generation_module": "./judge.py::Mine"', "own", ""),
        ('"judge_step_fn": "./judge.py::rule"', "step", "./judge.py::rule"),
    ],
)
def test_judges_with_programs_of_their_own(tmp_path: Path, program: str, kind: str, model: str) -> None:
    folder = package(tmp_path / "own", MATH + f"JUDGE_PIPELINE_ARGS = {{{program}}}\n")
    judge = get_benchmark(str(folder)).judge
    assert judge is not None
    assert (judge.kind, judge.model) == (kind, model)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        (MATH + 'GENERATION_MODULE = "nemo_skills.inference.eval.nothing"', "cannot run here"),
        (MATH + 'JUDGE_PIPELINE_ARGS = {"generation_module": "x.y"}', "x.y in JUDGE_PIPELINE_ARGS"),
        (MATH + 'JUDGE_ARGS = "loose"', "'loose' in JUDGE_ARGS is not of the form"),
        ("IS_BENCHMARK_GROUP = True", "BENCHMARKS is not a mapping"),
        (
            'IS_BENCHMARK_GROUP = True\nBENCHMARKS = {"gsm8k": {}}\nSCORE_MODULE = "no.such.module"',
            "no.such.module",
        ),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, constants: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        get_group(str(package(tmp_path / "broken", constants)))


GROUP = """
IS_BENCHMARK_GROUP = True
SCORE_MODULE = "somewhere.else.their_score"
BENCHMARKS = {
    "ours.sums": {"GENERATION_ARGS": "++inference.temperature=0.0 ++prompt_config=generic/default", "NUM_SAMPLES": 2},
    "ours.judged": {"EVAL_SPLIT": "dev", "JUDGE_ARGS": "++inference.tokens_to_generate=9"},
    "gsm8k": {},
}
"""
SCORE = """
def compute_score(metrics):
    return {"overall": sum(metrics[name]["pass@1"]["s"] for name in ("ours.sums", "ours.judged", "gsm8k")) / 3}
"""


def ours(folder: Path) -> Path:
    package(folder / "ours", GROUP, their_score__py=SCORE)
    package(folder / "ours/sums", MATH + 'GENERATION_ARGS = "++prompt_config=generic/math ++a.b=1"\n')
    package(
        folder / "ours/judged", MATH + 'JUDGE_PIPELINE_ARGS = {"model": "m"}\n', dev__jsonl='{"problem": "?"}\n'
    )
    return folder / "ours"


def test_groups_with_members_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ours(tmp_path)
    sums, judged, gsm8k = expand_benchmarks(str(folder))
    assert [one.name for one in (sums, judged, gsm8k)] == ["ours.sums", "ours.judged", "ours.gsm8k"]
    assert (sums.prompt, sums.samples) == ("generic/default", 2)
    assert sums.defaults == {"inference.temperature": 0.0, "a.b": 1}
    assert judged.judge == Judge(model="m", defaults={"inference.tokens_to_generate": 9})
    assert load_rows(judged, judged.split) == folder / "judged/dev.jsonl"
    assert gsm8k.data == "gsm8k"
    group = get_group(str(folder))
    assert group is not None
    assert group.score is not None
    modes = {member: {"pass@1": {"s": 3.0 * place}} for place, member in enumerate(group.members)}
    assert group.score(modes) == {"overall": 3.0}
    monkeypatch.setenv("NEWSKILLS_EXTRA_DATASETS", str(tmp_path))
    assert [one.name for one in expand_benchmarks("ours")] == ["ours.sums", "ours.judged", "ours.gsm8k"]
    assert get_benchmark("ours.sums").prompt == "generic/math"
    assert get_benchmark("ours.gsm8k").data == "gsm8k"


def test_a_group_by_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWSKILLS_EXTRA_BENCHMARK_MAP", json.dumps({"theirs": str(ours(tmp_path))}))
    assert [one.name for one in expand_benchmarks("theirs")] == ["theirs.sums", "theirs.judged", "theirs.gsm8k"]
    assert get_benchmark("theirs.sums").samples == 2


def test_data_in_the_data_directory(tmp_path: Path) -> None:
    benchmark = get_benchmark(str(package(tmp_path / "large", MATH + "REQUIRES_DATA_DIR = True\n")))
    place = tmp_path / "data/large/test.jsonl"
    with pytest.raises(DataError, match=r"there is no file .*data/large/test\.jsonl"):
        load_rows(benchmark, data_dir=tmp_path / "data")
    place.parent.mkdir(parents=True)
    place.write_text('{"problem": "?"}\n')
    assert load_rows(benchmark, data_dir=tmp_path / "data") == place


def test_packages_in_the_data_directory(tmp_path: Path) -> None:
    package(tmp_path / "large" / "part", MATH)
    package(tmp_path / "gsm8k", MATH)
    places = BenchmarkPlaces(None, tmp_path)
    assert get_benchmark("large.part", places).folder == str(tmp_path / "large/part")
    assert get_benchmark("gsm8k", places).sources, "a copy of a known benchmark does not replace it"
    with pytest.raises(UnknownNameError):
        get_benchmark("large.part")


def test_their_script_makes_the_data(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path\nPath(__file__).with_name('test.jsonl').write_text('{\"problem\": \"?\"}\\n')\n"
    )
    folder = package(tmp_path / "made", MATH, prepare__py=script)
    benchmark = get_benchmark(str(folder))
    with pytest.raises(DataError, match="comes without data for 'test'") as caught:
        load_rows(benchmark)
    assert caught.value.hint.endswith(f"ns prepare_data {folder}")
    assert prepare(benchmark).folder == folder
    assert load_rows(benchmark) == folder / "test.jsonl"
    package(tmp_path / "failing", MATH, prepare__py="raise ValueError('no luck')\n")
    with pytest.raises(DataError, match=r"prepare\.py ended with exit code 1: ValueError: no luck"):
        prepare(get_benchmark(str(tmp_path / "failing")))


@pytest.mark.parametrize("name", ["openai/gsm8k", "hf:openai/gsm8k:main"])
def test_a_data_set_of_the_hub_needs_a_description(name: str) -> None:
    with pytest.raises(ConfigError, match=r"data: \{hf: openai/gsm8k\}"):
        get_benchmark(name)
