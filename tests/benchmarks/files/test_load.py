# SPDX-License-Identifier: Apache-2.0
"""Descriptions that do not fit: one sentence with file, line and column, and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError, DataError, UserError
from newskills.base.store import read_rows
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks, get_benchmark
from newskills.benchmarks.data import prepare, ready_rows
from newskills.benchmarks.files.described import DescribedBenchmark
from newskills.benchmarks.files.format import BenchmarkFile
from newskills.benchmarks.files.kinds import KINDS, ROLES
from newskills.benchmarks.files.schema import SCHEMA, schema_text
from newskills.benchmarks.files.words import TableWords
from newskills.graders import make_grader
from newskills.graders.math.grader import MathGrader

QUESTIONS = 'q,a\n"Add 2 and 2.",4\n"Add 19 and 23.",42\n'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "questions.csv").write_text(QUESTIONS)
    (tmp_path / "train.csv").write_text('q,a\n"Add 1 and 1.",2\n"Add 2 and 3.",5\n')
    return tmp_path


def described(here: Path, text: str) -> DescribedBenchmark:
    (here / "mine.yaml").write_text(text)
    benchmark = get_benchmark(str(here / "mine.yaml"))
    assert isinstance(benchmark, DescribedBenchmark)
    return benchmark


def refusal(here: Path, text: str) -> str:
    with pytest.raises(UserError) as error:
        described(here, text)
    return str(error.value).replace(f"{here}/", "")


BAD = [
    ("…\ngradr: math", 2, 1, "there is no key 'gradr'; did you mean 'grader'?"),
    ("…\ngrader: mth", 2, 9, "Unknown grader 'mth'; did you mean 'math'?"),
    (
        "…\ngrader:\n  name: math\n  relative_tolerence: 1",
        4,
        3,
        "eval_config of grader 'math' has no key 'relative_tolerence'; did you mean 'relative_tolerance'",
    ),
    ("…\ngrader: {relative_tolerance: 1}", 2, 9, "the key 'name' is missing."),
    ("…\ngrader: null", 2, 9, "nobody decides whether an answer is correct"),
    ("…\ncolumns: {question: qq}", 2, 21, "there is no column 'qq'; did you mean"),
    (
        "…\ncolumns: {question: no}",
        2,
        21,
        "columns.question: expected text or an object or a list, got false. YAML reads yes, no, on and off",
    ),
    ("…\ncolumns:\n  answer: {colum: a}", 3, 12, "there is no key 'colum'; did"),
    ("data: {pth: questions.csv}", 1, 8, "there is no key 'pth'; did you mean 'path'?"),
    ("data: {split: test}", 1, 7, "data needs one of path, url and hf. For example"),
    ("data: {path: questions.csv, split: test}", 1, 36, "split is for data sets of the hub"),
    ("data: {path: questions.csv, separator: ';', format: lines}", 1, 7, "separator and header are"),
    ("data: {url: 'ftp://x/a.csv'}\nkind: math", 1, 13, "data.url: expected text matching"),
    ("data: question.csv", 1, 7, "There is no file question.csv."),
    ("data: .", 1, 7, "HERE is a folder; name its files"),
    (
        "…\nprompt: '{qestion}?'",
        2,
        9,
        "the prompt shows {qestion}, which rows do not have; did you mean 'question'?",
    ),
    ("…\nprompt: '{question ?'", 2, 9, "prompt, line 1, column 1: a single '{'."),
    ("…\nprompt: generic/mth", 2, 9, "Unknown prompt 'generic/mth'; did you mean"),
    ("…\nsystem: '{kind}'", 2, 9, "the prompt shows {kind}"),
    ("…\nsamples: many", 2, 10, "samples: expected a whole number, got 'many'."),
    ("…\nsamples: -1", 2, 10, "samples: expected a whole number >= 0"),
    ("…\nchance: 2", 2, 9, "chance: expected a number <= 1"),
    ("…\nkind: mat", 2, 7, "kind: 'mat' is not one of the choices; did you mean 'math'?"),
    ("…\nname: my set", 2, 7, "name: expected text matching regex"),
    ("…\nname: gsm8k", 2, 7, "'gsm8k' is the name of a benchmark of newskills"),
    ("…\nmetric: mth", 2, 9, "Unknown metric 'mth'; did you mean 'math'?"),
    ("…\nmetric: {name: math, ks: 1}", 2, 22, "The metric 'math' has no option 'ks'"),
    ("…\nfew_shot: {count: 2}", 2, 11, "nothing says where the examples come from"),
    ("…\nfew_shot: {count: 2, data: none.csv}", 2, 28, "There is no file none.csv."),
    ("…\ncolumns: {answer: {column: a, pattern: '('}}", 2, 40, "the pattern is no regular expression: missing ),"),
    ("…\nsolver: caht", 2, 9, "Unknown solver 'caht'; did you mean 'chat'?"),
    ("…\nfew_shot: {data: questions.csv}", 2, 11, "the examples are the questions"),
    (
        "…\nkind: short_answer\nfew_shot: {data: train.csv}",
        3,
        11,
        "the prompt generic/short-answer has no place for the examples.",
    ),
    ("…\nprompt: '{question}'\nfew_shot: {data: train.csv}", 2, 9, "the prompt has no place for the examples."),
    ("…\nprompt: '{question}{examples}'\nfew_shot: {data: train.csv}", 3, 11, "say how an example looks."),
    (
        "…\njudge: {prompt: 'is {generation} ok?', grader: judgment}",
        2,
        48,
        "Unknown grader 'judgment'; did you mean 'judgement'",
    ),
    ("…\njudge: judge/genral-judge", 2, 8, "Unknown prompt 'judge/genral-judge'"),
    ("data: {hf: a/b}", 1, 1, "say which kind of questions these are"),
    ("kind: math", 1, 1, "the key 'data' is missing, which names the questions."),
    ("…\nkind: choice", 1, 1, "which column holds the options (kind choice)? The columns are 'q', 'a'."),
]
"""Description (… stands for the line `data: questions.csv`), line, column, and how the sentence begins."""


@pytest.mark.parametrize(("text", "line", "column", "message"), BAD)
def test_what_does_not_fit_is_named_with_its_place(
    text: str, line: int, column: int, message: str, here: Path
) -> None:
    whole = text.replace("…", "data: questions.csv")
    shown = refusal(here, whole).replace(str(here), "HERE")
    assert shown.startswith(f"mine.yaml, line {line}, column {column}: {message}")


TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "uneven.csv": ("q,a\n1+1,2\n1,2,3\n", ("uneven.csv, line 3: 2 columns are expected, there are 3.",)),
    "quotes.csv": ('q,a\n"Add "1" and 2.",3\n', ("quotes.csv, line 2: ',' expected after '\"'.",)),
    "open.csv": ('q,a\n"Add 1 and 2.,3\n4,5\n', ("open.csv, line 3: unexpected end of data.",)),
    "twice.csv": ("q,a,a\n1,2,3\n", ("twice.csv, line 1: the column 'a' occurs twice.",)),
    "empty.csv": ("", ("empty.csv has no rows.",)),
    "only_names.csv": ("q,a\n", ("only_names.csv has no rows.",)),
    "broken.jsonl": ('{"q": 1, "a": 2}\n{"q": \n', ("broken.jsonl, line 2: invalid JSON",)),
    "list.jsonl": ("[1]\n", ("list.jsonl, line 1, item 1:",)),
    "nameless.csv": (
        "What is 1 and 1?,2\nWhat is 1 and 2?,3\n",
        ("which column holds the question? The columns are 'What is 1 and 1?', '2'.", "header: [question, answer]"),
    ),
    "two_questions.csv": (
        "question,problem,answer\na,b,1\n",
        ("several columns may hold the question. Say which:", "++columns='{question: problem}'"),
    ),
    "between.csv": (
        "question,answer\na,the old man and the sea of the north and of all other waters\nb,2\n",
        ("answers of several kinds fit. Say which:", "++kind=short_answer", "++kind=judged", "++kind=math"),
    ),
    "numbers.csv": (
        "question,A,B,C,answer\n?,x,y,z,1\n?,x,y,z,2\n",
        ("read in several ways. Say which:", "++answer_as=from_0   by numbers from 0: 1 is 'y'",
         "++answer_as=from_1   by numbers from 1: 1 is 'x'"),
    ),
    "german.csv": (
        "question;answer\n?;1.234,5\n?;2\n",
        ("1.234,5 can be read in two ways. Say which:", """answer: {column: answer, decimal: ","}}'   1.234,5 is a"""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_damaged_or_fits_twice(name: str, tmp_path: Path) -> None:
    text, messages = TABLES[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as error:
        get_benchmark(str(tmp_path / name))
    for message in messages:
        assert message in str(error.value)


def test_what_a_command_line_says_decides(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text(TABLES["numbers.csv"][0])
    (tmp_path / "between.csv").write_text(TABLES["between.csv"][0])

    def with_words(name: str, words: TableWords) -> DescribedBenchmark:
        places = BenchmarkPlaces(None, tmp_path / "data", words=words)
        (benchmark,) = expand_benchmarks(str(tmp_path / name), places)
        assert isinstance(benchmark, DescribedBenchmark)
        return benchmark

    for answer_as, letters in (("from_0", ["B", "C"]), ("from_1", ["A", "B"])):
        benchmark = with_words("numbers.csv", TableWords(answer_as=answer_as))
        lines = ready_rows(benchmark, "", tmp_path / "data").read_text().splitlines()
        assert [json.loads(line)["expected_answer"] for line in lines] == letters
    assert with_words("between.csv", TableWords(kind="judged")).judge == Judge(prompt="judge/general-judge")
    assert with_words("between.csv", TableWords(kind="math")).grader == "math"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("E", "the answer 'E' names none of the 3 options"),
        ("", "there is nothing in the column for 'answer'"),
        ("2", "the answer '2' can be read in several ways; write answer_as: from_0 (C), from_1 (B)"),
    ],
)
def test_rows_beyond_those_looked_at_are_named_with_their_line(answer: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("question,A,B,C,answer\n" + "?,x,y,z,A\n" * 700 + f"?,x,y,z,{answer}\n")
    with pytest.raises(DataError) as error:
        prepare(get_benchmark(str(path)), data_dir=tmp_path / "data")
    assert str(error.value) == f"{path}, line 702: the row does not fit long: {message}."


def test_all_that_a_description_may_say(here: Path) -> None:
    (here / "graders.py").write_text("def own(record):\n    raise NotImplementedError\n")
    benchmark = described(
        here,
        "data: questions.csv\ntitle: Sums\nname: adding\nkind: math\ncolumns: {question: q, answer: a}\n"
        "prompt: |\n  {examples}Q: {q} ({unit})\n  A:\nsystem: Be brief.\nfields: {unit: cm}\n"
        "few_shot: {data: train.csv, count: 2, prefix: 'Solved:\n\n'}\n"
        "grader: {name: math, relative_tolerance: 1e-3}\nmetric: {name: math}\nsamples: 4\n"
        "judge: {prompt: 'Is {generation} {expected_answer}?', model: gpt, server_type: openai, "
        "settings: {inference.temperature: 0}}\nsettings: {inference.tokens_to_generate: 9}\n"
        "licence: CC0\nhomepage: https://example.org\nchance: 0.25\n",
    )
    assert (benchmark.name, benchmark.title, benchmark.samples, benchmark.chance) == ("adding", "Sums", 4, 0.25)
    assert benchmark.defaults == {
        "prompt_source": "newskills",
        "prompt_config": {"user": "{examples}Q: {q} ({unit})\nA:", "system": "Be brief."},
        "examples_type": "examples",
        "few_shot_examples": {
            "num_few_shots": 2,
            "template": "Q: {q} ({unit})\nA: {expected_answer}\n\n",
            "prefix": "Solved:\n",
        },
        "inference.tokens_to_generate": 9,
    }
    assert (benchmark.grader, benchmark.grader_config) == ("math", {"relative_tolerance": "1e-3"})
    assert benchmark.judge == Judge(
        prompt="generic/default",
        defaults={"user_message": "Is {generation} {expected_answer}?", "inference.temperature": 0},
        model="gpt",
        server_type="openai",
    )
    rows = [json.loads(line) for line in ready_rows(benchmark, "", here / "data").read_text().splitlines()]
    assert {key: rows[1][key] for key in ("id", "problem", "q", "unit", "expected_answer")} == {
        "id": "adding-test-1", "problem": "Add 19 and 23.", "q": "Add 19 and 23.", "unit": "cm", "expected_answer": "42"
    }  # fmt: skip
    own = described(here, "data: questions.csv\ngrader: ./graders.py::own\nprompt: '{q}'\n")
    assert (own.grader, own.metric) == (f"{here}/graders.py::own", "generic")


def test_data_from_elsewhere(here: Path) -> None:
    text = "data: {hf: owner/set, config: main, split: validation}\nkind: choice\nfew_shot: {split: train, count: 3}\n"
    benchmark = described(here, text)
    assert [(source.hf, source.config, source.hf_split, source.split) for source in benchmark.sources] == [
        ("owner/set", "main", "validation", "test"),
        ("owner/set", "main", "train", "examples"),
    ]
    assert benchmark.is_local is False
    assert benchmark.row.columns == {role: role for role in ("question", "options", "answer")}
    with pytest.raises(DataError, match="is not prepared"):
        ready_rows(benchmark, "", here / "data", asked_name="./mine.yaml")
    assert (
        described(here, "data: https://example.org/a.csv\nkind: math\n").sources[0].url
        == "https://example.org/a.csv"
    )


def test_the_schema_for_editors_is_that_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()
    schema: dict[str, Any] = json.loads(schema_text())
    properties = schema["$defs"]["BenchmarkFile"]["properties"]
    assert set(properties) == {field.name for field in msgspec.structs.fields(BenchmarkFile)}
    kinds, _ = properties["kind"]["anyOf"]
    assert set(kinds["enum"]) == set(KINDS)
    assert set(properties["columns"]["properties"]) == set(ROLES)
    assert all(field.get("description") for field in properties.values())


def test_the_schema_takes_what_is_read_and_refuses_what_is_not(here: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    yaml = pytest.importorskip("yaml")
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    good = "data: questions.csv\nkind: math\ngrader: {name: math}\nfew_shot: {data: train.csv}\njudge: true\n"
    described(here, good.replace("judge: true\n", ""))
    assert list(validator.iter_errors(yaml.safe_load(good))) == []
    for bad in ("data: questions.csv\ngradr: math", "data: {pth: a}", "data: a\nsamples: many", "kind: math",
                "data: a\nkind: mat", "data: a\nname: my set", "data: a\ncolumns: {answer: {colum: a}}"):  # fmt: skip
        assert list(validator.iter_errors(yaml.safe_load(bad))), bad


def test_prompt_files_begin_at_the_description(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "my prompt.yaml").write_text("user: '{question} {examples}'\n")
    (here / "judge.yaml").write_text("user: '{generation}'\n")
    benchmark = described(here, "data: questions.csv\nprompt: my prompt.yaml\njudge: judge.yaml\n")
    assert benchmark.prompt == str(here / "my prompt.yaml")
    assert benchmark.judge is not None
    assert benchmark.judge.prompt == str(here / "judge.yaml")


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (("1", "-2.5", "3,000", "1e-3", "5 %", "3/4", "$7"), "math"),
        (("x = 2", r"\\frac{1}{2}", "x^{2}"), "math"),
        (("TCP/IP", "n/a"), "short_answer"),
        (("-", "--"), "short_answer"),
        (("yes", "No"), "yes_no"),
        (("Paris", "New York City"), "short_answer"),
        (("word " * 30, "text " * 40), "judged"),
    ],
)
def test_the_kind_that_answers_show(answers: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    rows = [json.dumps({"question": "?", "answer": answer}) for answer in answers]
    (tmp_path / "set.jsonl").write_text("\n".join(rows))
    benchmark = get_benchmark(str(tmp_path / "set.jsonl"))
    assert benchmark.row.kind == kind


def test_numbers_with_a_decimal_comma(tmp_path: Path) -> None:
    (tmp_path / "german.csv").write_text(TABLES["german.csv"][0])
    text = 'data: german.csv\ncolumns: {answer: {column: answer, decimal: ","}}\n'
    benchmark = described(tmp_path, text)
    rows = list(read_rows(ready_rows(benchmark, "", tmp_path / "data")))
    assert [row["expected_answer"] for row in rows] == ["1234.5", "2"]
    grader = make_grader("math", {})
    assert isinstance(grader, MathGrader)
    replies = ("1234.5", "1234,5", "1.234,5", "12345")
    verdicts = [grader.grade({**rows[0], "generation": f"\\boxed{{{reply}}}"}).outcome for reply in replies]
    assert verdicts == ["correct", "correct", "correct", "wrong"]


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"There is no file .*nowhere\.yaml"):
        get_benchmark("./nowhere.yaml")
