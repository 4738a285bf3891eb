# SPDX-License-Identifier: Apache-2.0
"""The thirteen generated tasks: what is asked for is in the text, as long as asked, and always the same."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.graders.plain import plain_grader
from tests.server import Answer, Script
from tokenizers import Tokenizer, models, pre_tokenizers

from newskills.base.benchmark import Benchmark, Group
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks, get_benchmark, get_group
from newskills.benchmarks.data import load_rows, prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.ruler import second
from newskills.benchmarks.ruler.build import make_ruler
from newskills.benchmarks.ruler.second import make_ruler2 as make_second
from newskills.benchmarks.ruler.tasks import TASKS, Article, TaskMaterial, TaskSample, build_sample
from newskills.cli import main

ARTICLES = [Article(f"Where is Bob{n}?", ["Rome", "in Rome"], [f"Bob{n} lives in Rome."]) for n in range(300)]
WITHOUT_QA = [name for name in TASKS if not name.startswith("qa")]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One token a word or mark."""
    words = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    words.save(str(path))
    return path


def _made(name: str, units: int = 200, index: int = 0) -> TaskSample:
    return build_sample(TASKS[name], units, Random(f"{name}{index}"), TaskMaterial(articles=ARTICLES), index)


@pytest.mark.parametrize("name", TASKS)
def test_answers_are_in_the_text_and_are_graded(name: str) -> None:
    made = _made(name)
    grader = plain_grader("ruler", {"match_type": TASKS[name].match})
    row = {"expected_answer": made.answers}
    assert all(answer in made.prompt for answer in made.answers)
    assert len(made.answers) == len(set(made.answers))
    assert grader.grade({**row, "generation": f"{made.prefix} {', '.join(made.answers)}."}).outcome == "correct"
    assert grader.grade({**row, "generation": f"{made.prefix} unknown"}).fields["is_correct"] == 0
    assert _made(name) == made
    assert _made(name, index=1) != made


@pytest.mark.parametrize(
    ("name", "needles", "answers"),
    [
        ("niah_single_1", 1, 1),
        ("niah_multikey_1", 4, 1),
        ("niah_multikey_2", 201, 1),
        ("niah_multikey_3", 201, 1),
        ("niah_multivalue", 4, 4),
        ("niah_multiquery", 4, 4),
    ],
)
def test_needles(name: str, needles: int, answers: int) -> None:
    made = _made(name)
    found = re.findall(r"The secret (?:number|code) of ([\w-]+) is ([\w-]+)\.", made.prompt)
    assert (len(found), len(made.answers)) == (needles, answers)
    assert len({key for key, _ in found}) == (1 if name == "niah_multivalue" else needles)
    asked = made.prompt.rpartition("\n")[2]
    assert {value for key, value in found if re.search(rf"\b{key}\b", asked)} == set(made.answers)


def test_chain() -> None:
    made = _made("vt")
    text = made.prompt.partition("Text: ")[2]
    values: dict[str, str] = {}
    for name, value in re.findall(r"VAR (\w+) = (?:VAR )?(\w+)\.", text):
        values[name] = values.get(value, value)
    assert len(values) == 5
    assert set(values.values()) == {re.findall(r"value (\d+)", text)[-1]}
    assert set(made.answers) == set(values)


def test_frequent_words() -> None:
    listed = Counter(re.findall(r"\d+\. ([\w-]+)", _made("cwe").prompt.partition("List:")[2]))
    assert {word for word, _ in listed.most_common(10)} == set(_made("cwe").answers)
    assert sorted(listed.values())[-11:-9] == [1, 10]
    many = Counter(re.findall(r"\d+\. ([\w-]+)", _made("cwe", 3000).prompt.partition("List:")[2]))
    assert (sorted(many.values())[-11:-9], len(many)) == ([3, 30], 910)
    coded = Counter(_made("fwe", 2000).prompt.split("\n\n")[1].split())
    assert [word for word, _ in coded.most_common(4)] == ["...", *_made("fwe", 2000).answers]


def _options(tokenizer: Path, **more: object) -> Row:
    options: Row = {"setup": "tiny", "tokenizer_path": str(tokenizer), "max_seq_length": 1500, "num_samples": 3}
    return {**options, **more}


def test_a_setup_is_a_group_of_benchmarks(tokenizer: Path, tmp_path: Path) -> None:
    names = make_ruler(tmp_path / "ruler", _options(tokenizer, tasks=WITHOUT_QA), FetchOptions(offline=True))
    assert names == ["ruler.tiny"]
    places = BenchmarkPlaces(None, tmp_path)
    group = get_group("ruler.tiny", places)
    assert isinstance(group, Group)
    members = expand_benchmarks("ruler.tiny", places)
    assert [member.name for member in members] == [f"ruler.tiny.{name}" for name in WITHOUT_QA]
    longest = []
    for member in members:
        rows = list(read_rows(load_rows(member, "test", tmp_path)))
        assert len(rows) == 3
        assert member.grader == member.metric == "ruler"
        assert member.defaults["start_assistant_response_key"] == "generation"
        longest.append(max(row["length"] for row in rows))
    assert max(longest) <= 1450
    assert min(longest) > 1200, longest
    vt = next(member for member in members if member.name.endswith(".vt"))
    assert vt.defaults["inference.tokens_to_generate"] == 30


def test_the_same_options_give_the_same_bytes(tokenizer: Path, tmp_path: Path) -> None:
    files = []
    for folder in ("a", "b", "c"):
        seed = {"random_seed": 7} if folder == "c" else {}
        options = _options(tokenizer, tasks=["niah_multikey_1", "cwe"], **seed)
        make_ruler(tmp_path / folder, options, FetchOptions(offline=True))
        files.append((tmp_path / folder / "tiny" / "cwe" / "test.jsonl").read_bytes())
    assert files[0] == files[1] != files[2]


def test_formats(tokenizer: Path, tmp_path: Path) -> None:
    for form in ("base", "chat"):
        make_ruler(
            tmp_path, _options(tokenizer, setup=form, tasks=["vt"], data_format=form), FetchOptions(offline=True)
        )
    base, chat = (next(iter(read_rows(tmp_path / form / "vt" / "test.jsonl"))) for form in ("base", "chat"))
    assert "generation" not in base
    assert "generation" not in chat
    assert base["question"].endswith(" are")
    assert chat["question"].endswith("Name all of them.")


def test_a_text_of_ones_own(tokenizer: Path, tmp_path: Path) -> None:
    text = tmp_path / "essay.txt"
    text.write_text(
        "Call me Ishmael. Some years ago I thought I would sail. It is a way I have!", encoding="utf-8"
    )
    options = _options(tokenizer, tasks=["niah_single_2"], haystack_file=str(text))
    make_ruler(tmp_path / "ruler", options, FetchOptions(offline=True))
    row = next(iter(read_rows(tmp_path / "ruler" / "tiny" / "niah_single_2" / "test.jsonl")))
    assert row["question"].count("Call me Ishmael.") > 10


def test_bad_options(tokenizer: Path, tmp_path: Path) -> None:
    offline = FetchOptions(offline=True)
    with pytest.raises(ConfigError, match="There is no task sort"):
        make_ruler(tmp_path, _options(tokenizer, tasks=["sort"]), offline)
    with pytest.raises(ConfigError, match=r"--setup is '\.\./x'"):
        make_ruler(tmp_path, _options(tokenizer, setup="../x"), offline)
    with pytest.raises(DataError, match="tokens are too few"):
        make_ruler(tmp_path, _options(tokenizer, tasks=["cwe"], max_seq_length=512, template_tokens=300), offline)
    with pytest.raises(ConfigError, match="--tokenizer_path"):
        prepare(get_benchmark("ruler"), data_dir=tmp_path, splits=["test"])


@pytest.mark.mirror
def test_questions_about_documents(mirror: Path, tokenizer: Path, tmp_path: Path) -> None:
    options = _options(tokenizer, tasks=["qa_1"], max_seq_length=4000)
    make_ruler(tmp_path / "ruler", options, FetchOptions(mirror=str(mirror), offline=True))
    rows = list(read_rows(tmp_path / "ruler" / "tiny" / "qa_1" / "test.jsonl"))
    assert all(3000 < row["length"] <= 3950 for row in rows)
    assert all(any(answer in row["question"] for answer in row["expected_answer"]) for row in rows)


def test_the_command(tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--setup=mine", f"--tokenizer_path={tokenizer}", "--max_seq_length=1024", "--num_samples=2"]
    code = main(["prepare_data", "ruler", f"--data_dir={tmp_path}", "--tasks=vt,fwe", *words])
    assert code == 0
    assert "ruler.mine is in" in capsys.readouterr().out
    assert isinstance(get_benchmark("ruler.mine.vt", BenchmarkPlaces(None, tmp_path)), Benchmark)


def test_without_a_tokenizer_tokens_are_estimated_rather_too_many(tokenizer: Path, tmp_path: Path) -> None:
    options = _options(tokenizer, tasks=["niah_single_3", "cwe"])
    del options["tokenizer_path"]
    make_ruler(tmp_path / "ruler", options, FetchOptions(offline=True))
    for task in ("niah_single_3", "cwe"):
        rows = list(read_rows(tmp_path / "ruler" / "tiny" / task / "test.jsonl"))
        assert all(1000 < row["length"] <= 1450 for row in rows)
        assert all(2 * len(row["question"].split()) / 3 < row["length"] for row in rows)


def test_folders_of_the_second_version(tmp_path: Path) -> None:
    task = tmp_path / "ruler2" / "mine" / "qa_easy"
    task.mkdir(parents=True)
    (task / "__init__.py").write_text(
        "METRICS_TYPE = 'ruler2'\nGENERATION_ARGS = '++prompt_config=generic/default ++eval_type=ruler2 "
        "++eval_config.match_type=part'\n"
    )
    (task / "test.jsonl").write_text('{"index": 0, "question": "Who?", "expected_answer": ["Ann"], "length": 9}\n')
    (task.parent / "__init__.py").write_text(
        "IS_BENCHMARK_GROUP = True\nBENCHMARKS = {'ruler2.mine.qa_easy': {}}\n"
    )
    (member,) = expand_benchmarks("ruler2.mine", BenchmarkPlaces(None, tmp_path))
    assert (member.grader, member.metric, member.grader_config) == ("ruler2", "ruler2", {"match_type": "part"})
    (row,) = read_rows(load_rows(member, "test", tmp_path))
    assert plain_grader("ruler2", {"match_type": "part"}).grade({**row, "generation": "Ann"}).outcome == "correct"


def test_a_setup_is_evaluated(tokenizer: Path, tmp_path: Path, fake_server: FakeServerFactory) -> None:
    make_ruler(tmp_path / "data" / "ruler", _options(tokenizer, tasks=["vt", "fwe"]), FetchOptions(offline=True))
    rows = read_rows(tmp_path / "data" / "ruler" / "tiny" / "vt" / "test.jsonl")
    table = {row["question"].rpartition("\n")[2]: " ".join(row["expected_answer"][:-1]) for row in rows}
    model = fake_server(Script(answer=Answer(kind="table", template="%s", table=table)))
    done = ns(
        f"ns eval --benchmarks=ruler.tiny --server_type=vllm --model=fake --server_address={model.url} "
        "--output_dir=out --data_dir=data",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    assert metrics["ruler.tiny.vt"]["pass@1"]["accuracy"] == pytest.approx(80), "four of five"
    assert model.records[0].body["messages"][-1]["role"] == "assistant"
    assert model.records[0].body["max_tokens"] in (30, 50)


ITEMS = [
    second.OptionQuestion(f"What is {n} times one? A. {n} B. {n + 1} C. {n + 2} D. {n + 3}", "A")
    for n in range(400)
]


def _fact(n: int) -> Article:
    texts = [f"P{n}\nHer mother is M{n}.", f"M{n}\nBorn in Town {n}.", f"Q{n}\nA fish."]
    return Article(f"Where was the mother of P{n} born?", [f"Town {n}"], texts, texts[:2])


FACTS = [_fact(n) for n in range(100)]


def _second(name: str, units: int = 120) -> TaskSample:
    material = () if name.endswith("niah_basic") else FACTS if name.startswith("qa") else ITEMS
    return second.build_sample(name, units, Random(name), material, 3)


@pytest.mark.parametrize("name", second.SECOND.tasks)
def test_the_second_version(name: str) -> None:
    made, limits = _second(name), second.SECOND.tasks[name]
    grader = plain_grader(limits.metric, {"match_type": limits.match} if limits.match else {})
    right = "\n\n".join(made.answers) if limits.match != "part" else made.answers[0]
    if limits.metric == "multichoice":
        row, right = {"expected_answer": made.answers[0]}, f"\\boxed{{{right}}}"
    else:
        row = {"expected_answer": made.answers}
        assert all(answer in made.prompt for answer in made.answers)
    assert grader.grade({**row, "generation": right}).outcome == "correct"
    assert grader.grade({**row, "generation": "\\boxed{D} unknown"}).outcome == "wrong"
    assert made == _second(name)


def test_questions_with_the_same_number() -> None:
    made = _second("mv_niah_easy")
    number = re.findall(r"every Question (\d+)", made.prompt)[0]
    found = re.findall(rf"Question {number}: (.*)", made.prompt)
    assert 1 <= len(found) <= 4
    assert found == made.answers
    hard = _second("mv_niah_hard")
    place, number = re.findall(r"Copy the (\w+) Question (\d+)", hard.prompt)[0]
    listed = re.findall(rf"Question {number}: (.*)", hard.prompt)
    assert listed[("first", "second", "third", "fourth").index(place)] == hard.answers[0]


def test_the_last_copy_counts() -> None:
    grader = plain_grader("ruler2", {"match_type": "2steps"})
    row = {"expected_answer": ["is it b?"]}
    all_of_them = "Question 7: is it a?\nQuestion 7: is it b?\n\nQuestion 7: "
    assert grader.grade({**row, "generation": f"{all_of_them}Is it b?"}).outcome == "correct"
    assert grader.grade({**row, "generation": f"{all_of_them}Is it a?"}).outcome == "wrong"


@pytest.mark.nightly
@pytest.mark.mirror
def test_a_setup_of_the_second_version(mirror: Path, tokenizer: Path, tmp_path: Path) -> None:
    options = _options(tokenizer, max_seq_length=6000, num_samples=2)
    with pytest.raises(DataError, match="4 of 12 tasks are not there"):
        make_second(tmp_path / "ruler2", options, FetchOptions(mirror=str(mirror), offline=True))
    members = expand_benchmarks("ruler2.tiny", BenchmarkPlaces(None, tmp_path))
    assert len(members) == 8
    by_name = {member.name.rpartition(".")[2]: member for member in members}
    assert by_name["mk_niah_hard"].grader == by_name["mk_niah_hard"].metric == "multichoice"
    assert by_name["mv_niah_medium"].grader_config == {"match_type": "2steps"}
    for member in members:
        rows = list(read_rows(load_rows(member, "test", tmp_path)))
        assert all(5400 < row["length"] <= 5950 for row in rows), member.name
