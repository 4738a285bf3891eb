# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Script

from newskills.solve.judges.contamination import read_same_verdict

TRAIN = [{"problem": text} for text in ("Add 1 and 2.", "Add 3 and 4.", "Add 5 and 6.", "Add 7 and 8.")]
TEST = [{"problem": text} for text in ("Sum of 1 and 2?", "Sum of 4 and 3?", "Sum of 6 and 6?", "A new one")]
PAIRS = {
    "First problem: Sum of 1 and 2?\n\nSecond problem: Add 1 and 2.": "True",
    "First problem: Add 3 and 4.\n\nSecond problem: Sum of 4 and 3?": "Yes: **True**",
    "Sum of 6 and 6?": "who knows",
}
JUDGE = Answer(kind="table", table=PAIRS, template="%s", text="False")


def line(server: FakeServer | FakeServerProcess, *options: str) -> str:
    return " ".join(
        [
            "ns generate --generation_type=check_contamination --server_type=vllm --model=fake",
            f"--server_address={server.url} --input_file=similar.jsonl --output_dir=out",
            *options,
        ]
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path / "train.jsonl", TRAIN)
    write(tmp_path / "test.jsonl", TEST)
    words = "ns retrieve_similar --retrieve_from=train.jsonl --compare_to=test.jsonl --output_file=similar.jsonl"
    done = ns(f"{words} --top_k=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 problems" in done.stdout
    return tmp_path


def test_copies_are_found(here: Path, fake_server: FakeServerFactory) -> None:
    assert rows_of(here / "similar.jsonl")[0]["similar_items"][0] == "Add 1 and 2."
    assert rows_of(here / "similar.jsonl")[3]["similar_items"] == []
    server = fake_server(Script(answer=JUDGE))
    done = ns(line(server), cwd=here)
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/output.jsonl")
    assert [record["contaminated"] for record in records] == [True, False, None, False]
    assert records[0]["all_generations"] == ["True"]
    assert records[1]["all_generations"] == ["False", "False"]
    assert (records[2]["outcome"], records[2]["outcome_cause"]) == ("unscored", "judge")
    assert "1 of 3 contaminated (33.33%), 1 without a verdict" in done.stdout
    assert len(server.records) == 5


def test_both_orders_and_fewer_items(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=JUDGE))
    done = ns(line(server, "++check_both_ways=true ++top_k=1"), cwd=here)
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/output.jsonl")
    assert [record["contaminated"] for record in records] == [True, True, None, False]
    assert records[1]["all_generations"] == ["False", "Yes: **True**"]
    assert [len(record["all_generations"]) for record in records] == [1, 2, 2, 0]


def test_work_begun_with_other_settings_is_not_gone_on_with(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=JUDGE, faults=(Fault(kind="status", status=401, marker="6 and 6"),)))
    assert ns(line(server), cwd=here).returncode != 0
    server.script = Script(answer=JUDGE)
    refused = ns(line(server, "++check_both_ways=true"), cwd=here)
    assert refused.returncode == 2
    assert "solver_config" in refused.stderr
    assert ns(line(server), cwd=here).returncode == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem": "a"}, "similar_items"),
        ({"similar_items": ["b"]}, "'problem' is missing"),
        ({"problem": "a", "similar_items": "b"}, "not a list of texts"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    row: dict[str, Any], message: str, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=JUDGE))
    write(tmp_path / "similar.jsonl", [row])
    done = ns(line(server), cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert server.records == []


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("True", True),
        (" **false**.", False),
        ("<think>true or false?</think>\nFalse", False),
        ("It is not true that they differ. It is true.", True),
        ("True would mean they are the same; they are not.\nFalse", False),
        ("True or False? True, then False, who knows", None),
        ("untrue", None),
        ("", None),
    ],
)
def test_verdicts(text: str, verdict: bool | None) -> None:
    assert read_same_verdict(text) is verdict


def test_training_data_is_cleaned_of_what_the_judge_called_the_same(
    here: Path, fake_server: FakeServerFactory
) -> None:
    """The other way round: test problems are retrieved for each training problem, and the verdicts are the filter."""
    words = "ns retrieve_similar --retrieve_from=test.jsonl --compare_to=train.jsonl --output_file=similar.jsonl"
    assert ns(f"{words} --top_k=3", cwd=here).returncode == 0
    server = fake_server(
        Script(answer=Answer(kind="table", table={"First problem: Add 1 and 2.": "True"}, text="False"))
    )
    assert ns(line(server), cwd=here).returncode == 0
    write(here / "solved.jsonl", [{**row, "generation": "x", "symbolic_correct": True} for row in TRAIN])
    build = "ns prepare_training_data --config-name=math_sft ++input_files=solved.jsonl ++output_path=sft.jsonl"
    keys = "++filters.remove_contaminated=true ++contamination_file=out/output.jsonl"
    done = ns(f"{build} {keys} ++filters.remove_len_outlier_problems=false", cwd=here)
    assert done.returncode == 0, done.stderr
    assert sorted(row["input"] for row in rows_of(here / "sft.jsonl")) == [row["problem"] for row in TRAIN[1:]]
