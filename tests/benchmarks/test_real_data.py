# SPDX-License-Identifier: Apache-2.0
"""Every benchmark of the mirror, prepared from the real files: counts, ids, answers, and the traps of each.

A benchmark is entered in `COUNTS`; where its answer lies in `expected_answer` and `golds` knows its grader, the right
and a wrong reply to each row are graded, too. The benchmark names its `misprints`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.benchmarks.golds import can_grade, check_prompts, scores
from tests.graders.plain import plain_grader

from newskills.base.benchmark import OTHER_SPLIT
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import PreparedData, prepare
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.sources import in_mirror
from newskills.benchmarks.evidence import evidence_of
from newskills.benchmarks.generate_catalog import built_in
from newskills.graders.lean.program import read_proof, read_statement
from newskills.graders.lean.source import forbidden_reason

pytestmark = pytest.mark.mirror

COUNTS = {
    ("gsm8k", "test"): 1319,
    ("gsm8k", "train"): 7473,
    ("hendrycks_math", "test"): 5000,
    ("math-500", "test"): 500,
    ("aime24", "test"): 30,
    ("aime25", "test"): 30,
    ("amc23", "test"): 40,
    ("minerva_math", "test"): 272,
    ("svamp", "test"): 1000,
    ("asdiv", "test"): 2305,
    ("olympiadbench", "test"): 675,
    ("mmlu", "test"): 14042,
    ("mmlu", "dev"): 285,
    ("mmlu", "val"): 1531,
    ("algebra222", "test"): 222,
    ("college_math", "test"): 2818,
    ("gaokao2023en", "test"): 385,
    ("comp-math-24-25", "test"): 256,
    ("math-odyssey", "test"): 387,
    ("gsm-hard", "test"): 1319,
    ("imo-answerbench", "test"): 400,
    ("scibench", "test"): 692,
    ("critpt", "test"): 70,
    ("agieval.aqua-rat", "test"): 254,
    ("agieval.gaokao-biology", "test"): 210,
    ("agieval.gaokao-chemistry", "test"): 207,
    ("agieval.gaokao-mathcloze", "test"): 118,
    ("agieval.gaokao-physics", "test"): 200,
    ("agieval.logiqa-en", "test"): 651,
    ("agieval.lsat-ar", "test"): 230,
    ("agieval.lsat-lr", "test"): 510,
    ("agieval.sat-en-without-passage", "test"): 206,
    ("agieval.sat-math", "test"): 220,
    ("mawps", "test"): 2065,
    ("cmimc24", "test"): 30,
    ("hmmt_feb24", "test"): 30,
    ("hmmt_feb25", "test"): 30,
    ("aime25-matharena", "test"): 30,
    ("aqua", "test"): 254,
    ("aqua", "dev"): 254,
    ("aime24-artofproblemsolving", "test"): 30,
    ("sat_math", "test"): 32,
    ("mmlu_stem", "test"): 3018,
    ("commonsenseqa", "validation"): 1221,
    ("coin_flip", "test"): 500,
    ("last_letters", "test"): 500,
    ("date_understanding", "test"): 369,
    ("bbh", "test"): 6511,
    ("bbeh-mini", "test"): 460,
    ("arc-agi-1", "evaluation"): 400,
    ("arc-agi-2", "evaluation"): 120,
    ("kor-bench", "test"): 1250,
    ("simple-bench-public", "test"): 10,
    ("livebench", "test"): 482,
    ("livebench", "all"): 818,
    ("xstest", "test"): 450,
    ("bbq.religion", "test"): 1200,
    ("bbq.sexual_orientation", "test"): 864,
    ("chinese-simpleqa", "test"): 3000,
    ("longfact", "test"): 2280,
    ("openai-evals.2d_movement", "test"): 100,
    ("openai-evals.jee-math", "test"): 434,
    ("openai-evals.logic-grid", "test"): 90,
    ("openai-evals.math-derivatives", "test"): 31,
    ("openai-evals.music_theory_scale_modes", "test"): 336,
    ("openai-evals.simple_physics_engine", "test"): 15,
    ("ifeval", "test"): 541,
    ("ifbench", "test"): 300,
    ("followbench", "test"): 820,
    ("api-bank", "test"): 389,
    ("mbpp-plus", "test"): 399,
    ("human-eval-infilling", "random_span"): 1640,
    ("human-eval-infilling", "single_line"): 1033,
    ("human-eval-infilling", "multi_line"): 5815,
    ("human-eval-infilling", "random_span_light"): 164,
    ("bigcodebench-hard", "v0.1.4"): 148,
    ("code_contests-deepscaler", "test"): 165,
    ("humaneval-x", "test"): 984,
    ("multipl-e-humaneval", "test"): 948,
    ("verilog-eval", "test"): 156,
    ("kernelbench", "test"): 250,
    ("mgsm", "test"): 2750,
    ("cmath", "test"): 600,
    ("cn_middle_school", "test"): 101,
    ("gaokao2024_mix", "test"): 91,
    ("gaokao_math_qa", "test"): 351,
    ("gaokao_math_cloze", "test"): 118,
    ("cmmlu", "test"): 11582,
    ("cmmlu", "dev"): 335,
    ("xquad.de", "test"): 1190,
    ("xquad.en", "test"): 1190,
    ("xquad.zh", "test"): 1190,
    ("jcommonsenseqa", "validation"): 1119,
    ("polymath.de", "test"): 500,
    ("polymath.en", "test"): 500,
    ("polymath.es", "test"): 500,
    ("polymath.fr", "test"): 500,
    ("polymath.ja", "test"): 500,
    ("polymath.zh", "test"): 500,
    ("wmt24-general", "test"): 7031,
    ("minif2f", "test"): 244,
    ("mobench", "test"): 360,
    ("proofnet", "test"): 186,
    ("proofnet", "valid"): 185,
    ("putnam-bench", "test"): 672,
    ("lean-imo-bench", "test"): 60,
    ("minif2f-deepseek", "test"): 244,
    ("minif2f-deepseek", "valid"): 244,
    ("proofnet-original", "test"): 186,
    ("proofnet-original", "valid"): 185,
    ("combibench", "test"): 100,
    ("verina", "test"): 189,
    ("verina-code", "test"): 189,
    ("verina-spec", "test"): 189,
    ("tau2-bench.retail", "test"): 114,
    ("tau2-bench.mock", "test"): 10,
    ("swe-bench", "default"): 500,
    ("swe-bench-multilingual", "default"): 300,
    ("kv-retrieval", "test"): 500,
    ("kv-retrieval", "at_0"): 500,
    ("kv-retrieval", "at_4"): 500,
    ("loogle", "test"): 123,
    ("arena-hard", "test"): 500,
    ("mt-bench", "test"): 80,
    ("math-vision", "testmini"): 304,
    ("puzzlevqa", "test"): 200,
    ("charxiv", "validation"): 5000,
    ("hallusionbench", "test"): 1129,
    ("pope", "test"): 3000,
    ("fsdd", "test"): 300,
}
DROPPED: dict[tuple[str, str], dict[str, int]] = {
    ("livebench", "test"): {"removed from the current release": 336},
    ("followbench", "test"): {"level 0 has no constraint to judge": 124},
    ("proofnet", "test"): {OTHER_SPLIT.reason: 185},
    ("proofnet", "valid"): {OTHER_SPLIT.reason: 186},
    ("minif2f-deepseek", "test"): {OTHER_SPLIT.reason: 244},
    ("minif2f-deepseek", "valid"): {OTHER_SPLIT.reason: 244},
}
"""(Benchmark, split) → rows that the mapping leaves out, by reason."""
PARTS = {("puzzlevqa", "test")}
"""(Benchmark, split) of which the mirror holds only some files; a notice tells of the rows that are missing."""
SAMPLE = 300
NUMBER = re.compile(r"-?\d+(\.\d+)?")


@pytest.fixture(scope="session")
def prepared(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of prepared data; those of a benchmark are there when the first of its tests has asked for them."""
    return tmp_path_factory.mktemp("prepared")


@cache
def _prepared(folder: Path, name: str) -> PreparedData:
    options = FetchOptions(mirror=os.environ["NEWSKILLS_MIRROR"], offline=True)
    done = prepare(get_benchmark(name), data_dir=folder, options=options)
    for split in done.splits:
        dropped = DROPPED.get((name, split.split), {})
        assert split.provenance.dropped == dropped
        assert len(split.notices) == len(dropped.keys() - {OTHER_SPLIT.reason}) + ((name, split.split) in PARTS), (
            split.notices
        )
    return done


@cache
def _rows(folder: Path, name: str, split: str) -> list[Row]:
    places = {made.split: made.path for made in _prepared(folder, name).splits}
    return list(read_rows(places[split]))


def test_what_is_called_verified_is_in_the_mirror_or_says_what_was_read(mirror: Path, tmp_path: Path) -> None:
    fetcher = Fetcher(tmp_path, FetchOptions(mirror=str(mirror), offline=True))
    for _, benchmark in built_in():
        sources = [source for source in benchmark.sources if source.split == benchmark.split]
        if sources and not benchmark.data:
            mirrored = any(in_mirror(source, fetcher) for source in sources)
            assert not (mirrored and benchmark.unverified), benchmark.name
            assert mirrored or benchmark.unverified or evidence_of(benchmark.name), benchmark.name


@pytest.mark.parametrize(("name", "split"), COUNTS)
def test_counts_ids_and_answers(prepared: Path, name: str, split: str) -> None:
    rows = _rows(prepared, name, split)
    assert len(rows) == COUNTS[name, split]
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(isinstance(row["id"], str) for row in rows)
    benchmark = get_benchmark(name)
    check_prompts(benchmark, rows, prepared / name.replace(".", "/"))
    if can_grade(benchmark) and benchmark.grader != "translation":
        kind = list if benchmark.grader == "grid_match" else str
        assert all(isinstance(row["expected_answer"], kind) and row["expected_answer"] for row in rows)


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in COUNTS))
def test_right_and_wrong_replies(prepared: Path, name: str) -> None:
    benchmark = get_benchmark(name)
    if not can_grade(benchmark):
        pytest.skip(f"the grader {benchmark.grader} has tests of its own")
    rows = _rows(prepared, name, benchmark.split)
    right = scores(benchmark, rows, right=True)
    assert {identity for identity, score in right.items() if score.outcome != "correct"} == set(
        benchmark.misprints
    )
    some = rows[:: 1 + len(rows) // SAMPLE]
    wrong = Counter(score.outcome for score in scores(benchmark, some, right=False).values())
    assert wrong["wrong"] + wrong["unscored"] == len(some)
    assert wrong["unscored"] <= 0.02 * len(some), "nearly every gold answer can be told from a number"


def test_gsm8k(prepared: Path) -> None:
    rows = _rows(prepared, "gsm8k", "test") + _rows(prepared, "gsm8k", "train")
    assert all(re.fullmatch(r"-?\d+", row["expected_answer"]) for row in rows)
    assert not any("<<" in row["reference_solution"] or "####" in row["reference_solution"] for row in rows)
    test = Counter(row["expected_answer"].startswith("-") for row in _rows(prepared, "gsm8k", "test"))
    assert test[True] == 2
    corrected = {row["raw_answer"]: row["expected_answer"] for row in rows if "raw_answer" in row}
    assert corrected == {
        "10850": "10750", "4": corrected["4"], "1920": "19200", "66": "64", "106": "108", "3": "13"
    }  # fmt: skip
    assert sum("raw_answer" in row for row in rows) == 7


def test_math_agrees_with_its_sample(prepared: Path) -> None:
    full = {row["problem"]: row for row in _rows(prepared, "hendrycks_math", "test")}
    sample = _rows(prepared, "math-500", "test")
    differ = [row["id"] for row in sample if full[row["problem"]]["expected_answer"] != row["expected_answer"]]
    assert differ == []
    assert all(full[row["problem"]]["level"] == row["level"] for row in sample)
    assert Counter(row["level"] for row in sample) == {1: 43, 2: 90, 3: 105, 4: 128, 5: 134}


def test_math_lists_are_whole(prepared: Path) -> None:
    rows = _rows(prepared, "hendrycks_math", "test")
    assert rows[414]["expected_answer"] == "-2, 1"
    assert rows[4562]["expected_answer"] == r"30^\circ, 45^\circ, 105^\circ"
    assert rows[2656]["expected_answer"] == "-10879, 10879"
    assert rows[4060]["expected_answer"] == "12"
    assert {row["level"] for row in rows} == {1, 2, 3, 4, 5}


def test_integers_are_written_as_integers(prepared: Path) -> None:
    for name in ("amc23", "svamp"):
        assert all(re.fullmatch(r"-?\d+", row["expected_answer"]) for row in _rows(prepared, name, "test")), name
    assert _rows(prepared, "amc23", "test")[0]["expected_answer"] == "27"


def test_svamp_sentences_end(prepared: Path) -> None:
    rows = _rows(prepared, "svamp", "test")
    assert rows[0]["problem"].endswith("on each pack. How much do you have to pay to buy each pack?")
    assert sum(".." in row["problem"] for row in rows) == 1, "one text has two stops in the source"
    assert rows[0]["reference_equation"] == "( 76.0 - 25.0 )"


def test_asdiv_units_are_cut(prepared: Path) -> None:
    rows = {row["raw_answer"]: row["expected_answer"] for row in _rows(prepared, "asdiv", "test")}
    assert rows["9 (apples)"] == "9"
    assert rows["65.0 (dollars)"] == "65"
    assert rows["134.04 (dollars)"] == "134.04"
    assert rows["-(1/3)"] == "-(1/3)"
    assert rows["11; 12; 13"] == "11, 12, 13"
    assert rows["5 (years old); 15 (years old); 20 (years old)"] == "5, 15, 20"
    assert rows["3:30 p.m."] == "3:30 p.m."
    kept = [raw for raw, answer in rows.items() if "(" in answer]
    assert kept == ["-(1/3)"]
    assert sum(NUMBER.fullmatch(answer) is None for answer in rows.values()) < 220


def test_olympiadbench(prepared: Path) -> None:
    rows = _rows(prepared, "olympiadbench", "test")
    assert not any("$" in row["expected_answer"] for row in rows)
    assert Counter(row["answer_type"] for row in rows) == {
        "Numerical": 572, "Expression": 64, "Tuple": 33, "Interval": 6
    }  # fmt: skip
    assert next(row for row in rows if row["raw_answer"] == "$69$,$84$")["expected_answer"] == "69,84"


def test_minerva(prepared: Path) -> None:
    rows = _rows(prepared, "minerva_math", "test")
    assert [row["expected_answer"] for row in rows[:6]] == [
        "1.6",
        "4.5e33",
        "41.8",
        "20.39",
        "0.006",
        "np.arcsin(10/13)",
    ]


def test_mmlu(prepared: Path) -> None:
    rows = _rows(prepared, "mmlu", "test")
    assert Counter(row["expected_answer"] for row in rows) == {"A": 3222, "B": 3462, "C": 3582, "D": 3776}
    assert len({row["subtopic"] for row in rows}) == 57
    assert len({row["subset_for_metrics"] for row in rows}) == 17
    first = rows[0]
    assert first["examples_type"] == "mmlu_few_shot_abstract_algebra"
    assert first["problem"].endswith("\n\nA) 0\nB) 4\nC) 2\nD) 6")
    assert (first["A"], first["D"], first["options"]) == ("0", "6", "A) 0\nB) 4\nC) 2\nD) 6")
    assert set(Counter(row["subtopic"] for row in _rows(prepared, "mmlu", "dev")).values()) == {5}


def test_aime(prepared: Path) -> None:
    rows = _rows(prepared, "aime24", "test")
    assert set(rows[0]) == {"id", "problem", "expected_answer", "reference_solution"}
    assert all(0 <= int(row["expected_answer"]) <= 999 for row in rows + _rows(prepared, "aime25", "test"))


def test_arc_grids(prepared: Path) -> None:
    for name, grids in (("arc-agi-1", 419), ("arc-agi-2", 167)):
        assert sum(len(row["expected_answer"]) for row in _rows(prepared, name, "evaluation")) == grids


def test_xstest(prepared: Path) -> None:
    rows = _rows(prepared, "xstest", "test")
    assert Counter(row["label"] for row in rows) == {"safe": 250, "unsafe": 200}
    assert all(row["right_verdicts"] == ["complied"] for row in rows if row["label"] == "safe")


def test_bbq_knows_the_stereotype_of_every_row(prepared: Path) -> None:
    """Half of the decided questions have the stereotyped answer."""
    for name in ("bbq.religion", "bbq.sexual_orientation"):
        decided = [row for row in _rows(prepared, name, "test") if row["context_condition"] == "disambig"]
        fitting = Counter(row["stereotyped_answer"] == row["expected_answer"] for row in decided)
        assert fitting == {True: len(decided) // 2, False: len(decided) // 2}


def test_shuffled_dates_are_spread(prepared: Path) -> None:
    letters = Counter(row["expected_answer"] for row in _rows(prepared, "date_understanding", "test"))
    assert max(letters.values()) < 0.27 * 369, letters


def test_simpleqa(mirror: Path, tmp_path: Path) -> None:
    options = FetchOptions(mirror=str(mirror), offline=True)
    (made,) = prepare(get_benchmark("simpleqa"), data_dir=tmp_path, splits=["test"], options=options).splits
    rows = list(read_rows(made.path))
    assert len(rows) == 4326
    assert rows[0]["expected_answer"] == "Michio Sugeno"
    assert rows[0]["metadata"]["topic"] == rows[0]["subset_for_metrics"] == "Science and technology"


def test_the_hard_part_of_bigcodebench_is_a_split_of_it(mirror: Path, tmp_path: Path) -> None:
    options = FetchOptions(mirror=str(mirror), offline=True)
    (made,) = prepare(get_benchmark("bigcodebench"), data_dir=tmp_path, splits=["hard"], options=options).splits
    alone = prepare(get_benchmark("bigcodebench-hard"), data_dir=tmp_path, options=options).splits[0]
    assert list(read_rows(made.path)) == list(read_rows(alone.path))
    assert {row["split"] for row in read_rows(made.path)} == {"hard"}


def test_fields_that_prompts_of_users_may_ask_for(prepared: Path) -> None:
    for split in ("random_span", "single_line"):
        assert {row["split"] for row in _rows(prepared, "human-eval-infilling", split)} == {split}
    assert _rows(prepared, "imo-proofbench", "test")[0]["problem_id"] == "PB-Basic-001"


def test_livebench(prepared: Path) -> None:
    """Right replies to all ten tasks but one are right, those to the question before are not."""
    grader = plain_grader("livebench", {})
    rows = [row for row in _rows(prepared, "livebench", "all") if row["task"] != "paraphrase"]
    wrong = Counter[str]()
    for before, row in zip([rows[-1], *rows], rows, strict=False):
        assert grader.grade({**row, "generation": grader.gold_reply(row)}).outcome == "correct", row["id"]  # type: ignore[attr-defined]
        if before["task"] == row["task"] and before["ground_truth"] != row["ground_truth"]:
            wrong[grader.grade({**row, "generation": grader.gold_reply(before)}).outcome] += 1  # type: ignore[attr-defined]
    assert wrong["correct"] == 0
    assert wrong["wrong"] > 600


def test_the_asked_pair_is_moved(prepared: Path) -> None:
    for split, place in (("at_0", 0.0), ("at_4", 1.0)):
        rows = _rows(prepared, "kv-retrieval", split)
        assert {row["depth"] for row in rows} == {place}
    first = _rows(prepared, "kv-retrieval", "at_0")[0]
    assert first["problem"].split("{", 1)[1].split(": ")[1].startswith(f'"{first["expected_answer"]}"')
    assert {row["subset_for_metrics"] for row in _rows(prepared, "kv-retrieval", "test")} > {"fifth 1", "fifth 5"}


@pytest.mark.parametrize(
    "name",
    [
        "minif2f",
        "mobench",
        "proofnet",
        "putnam-bench",
        "lean-imo-bench",
        "minif2f-deepseek",
        "combibench",
        "verina",
    ],
)
def test_lean_statements_are_whole_and_may_be_repeated(prepared: Path, name: str) -> None:
    """An answer that repeats the whole file is taken for its proof alone, whatever the file declares."""
    for row in _rows(prepared, name, "test"):
        statement = read_statement(row["header"], row["formal_statement"])
        start = row["formal_statement"].rstrip()
        end = "  omega" if start.endswith("by") else "  by omega"
        proof = read_proof(f"{row['header']}{row['informal_prefix']}{start}\n{end}", statement, restate=True)
        assert proof is not None, row["id"]
        assert (proof.before, proof.body.split()) == ("", [":=", "by", "omega"]), row["id"]
        assert forbidden_reason(proof.body) == ""
