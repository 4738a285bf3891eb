# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests import forkserver
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import write_rows
from newskills.run.training.leakage import Questions, question_of, texts_of

ASKED = ["What is 3 + 4?", "Sort: 3, 4", "Two lines:\n  the SECOND"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<|im_start|>user\nWhat is  3 + 4?<|im_end|>\n<|im_start|>assistant\n", ASKED[:1]),
        ("[INST] Sort: 3, 4 [/INST]", ASKED[1:2]),
        ("Solve this.\n\ntwo lines:\nthe second\n", ASKED[2:]),
        ("What is 13 + 4?", []),
        ("Sort: 3, 4, 5", []),
        ("Two lines:\nanother", []),
        ("", []),
    ],
)
def test_questions_are_found_between_marks(text: str, found: list[str]) -> None:
    assert Questions(ASKED).found_in([text]) == found


def test_where_rows_say_what_they_ask() -> None:
    chat = {"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]}
    assert (question_of(chat), list(texts_of(chat))) == ("A", ["A"])
    assert question_of({"question": "Q", "prompt": "P"}) == "Q"
    assert question_of({"expected_answer": "Q"}) is None
    assert list(texts_of({"input": "I", "output": "O"})) == ["I"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    rows = [{"id": str(n), "question": f"AB{n}", "expected_answer": "A"} for n in range(6)]
    for name, part in (("train", rows), ("test", rows[4:]), ("other", rows[:1])):
        write_rows(tmp_path / f"rows/{name}.jsonl", part)
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\nfrom newskills.base.benchmark import Benchmark\n"
        "BENCHMARK = Benchmark(name='mine', category='reasoning', title='mine', grader='exact', "
        "folder=str(Path(__file__).parent / 'rows'), prompt='generic/default')\n"
    )
    write_rows(tmp_path / "sft.jsonl", [{"input": f"<user>AB{n}<assistant>", "output": "A"} for n in (0, 1, 5)])
    return tmp_path


def ns(place: Path, *words: str) -> CompletedProcess[str]:
    return forkserver.ns([*words, "--model=model", "--output_dir=out"], cwd=place)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["grpo", "--benchmark=./mine.py"], "2 of 2 questions of mine (test)"),
        (["grpo", "--benchmark=./mine.py", "--split=test"], "2 of 2 questions of mine (test)"),
        (
            ["grpo", "--benchmark=./mine.py", "--split=other", "--eval_data=rows/train.jsonl"],
            "1 of 6 questions of rows/",
        ),
        (["sft", "--training_data=sft.jsonl", "--eval_benchmark=./mine.py"], "1 of 2 questions of mine (test)"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_what_is_measured_is_not_learnt_from(place: Path, words: list[str], said: str, dry: bool) -> None:
    done = ns(place, *words, *(["--dry_run"] if dry else []))
    assert done.returncode == 2
    assert f"overlap: {said}" in done.stderr
    assert "are in the training data and in the evaluation" in done.stderr
    assert "--allow_overlap" in done.stderr
    assert not (place / "out/metrics.jsonl").exists()
    told = ns(place, *words, "--dry_run", "--allow_overlap")
    assert told.returncode == 0, told.stderr
    assert f"overlap: {said}" in told.stderr


def test_other_questions_are_learnt_from(place: Path) -> None:
    done = ns(place, "grpo", "--benchmark=./mine.py", "--split=other", "--dry_run")
    assert done.returncode == 0, done.stderr
    assert "overlap: 0 of 2 questions of mine (test) are in the training data" in done.stderr
