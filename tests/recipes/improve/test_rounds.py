# SPDX-License-Identifier: Apache-2.0
"""Rounds with a real model of three blocks: one that is kept, one with wrong expected answers, a guard, kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.disks import small_disk
from tests.recipes.improve.words import COUNT, KEYS, UNTAUGHT, spec_for, words_benchmark, write_training

from newskills.base.errors import ConfigError, StorageError
from newskills.base.store import read_rows
from newskills.pipelines.improvement_report import write_improvement_report
from newskills.recipes.improve.loop import Improvement, run_improvement
from newskills.recipes.improve.records import ImproveSpec, ImproveStage, RoundRecord

pytestmark = [pytest.mark.local_model, pytest.mark.slow]


@pytest.fixture(scope="module")
def poisoned(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ImproveSpec, Improvement]:
    """Two rounds: the expected answers of the first are right, those of the second wrong."""
    folder = tmp_path_factory.mktemp("poisoned")
    write_training(folder, "Item", ("yes", "no"))
    spec = spec_for(folder, small_model, words_benchmark(folder, "words", "Item", "yes"))
    return spec, run_improvement(spec, say=lambda _: None)


@pytest.mark.nightly
def test_a_round_that_is_better_is_kept_and_one_with_wrong_answers_is_not(
    poisoned: tuple[ImproveSpec, Improvement],
) -> None:
    spec, improvement = poisoned
    first, second = improvement.rounds
    assert (first.kept, second.kept) == (True, False)
    assert first.test is not None
    assert second.test is not None
    right = COUNT - COUNT // UNTAUGHT
    assert (first.test.gained, first.test.lost, first.test.problems) == (right, 0, COUNT)
    assert first.test.p_value < first.test.level
    assert (second.test.gained, second.test.lost) == (0, right)
    assert second.test.level == pytest.approx(first.test.level / 4)
    assert (first.begun_from, second.begun_from) == ("base", "round-01")
    assert improvement.model == spec.model_folder("round-01")
    assert improvement.why == "all rounds are done (--rounds=2)"
    assert not spec.model_folder("round-02").exists()
    assert not list(spec.folder(2).glob("training/checkpoint-*"))
    assert (spec.folder(2) / "training/metrics.jsonl").is_file()
    assert first.examples.replies == 2 * COUNT
    assert first.tokens_sampled > 0
    assert first.tokens_trained > 0


@pytest.mark.nightly
def test_the_report_has_curve_cost_gain_and_flips(poisoned: tuple[ImproveSpec, Improvement]) -> None:
    page = write_improvement_report(*poisoned)
    text = page.with_suffix(".md").read_text()
    for part in (
        "## Rounds",
        "round-02, not kept",
        "## Cost",
        "wrong → right",
        "problems that changed",
        "Training:",
    ):
        assert part in text
    assert "<svg" in page.read_text()


@pytest.mark.nightly
def test_what_is_done_is_not_done_again_and_more_rounds_change_the_mixture(
    poisoned: tuple[ImproveSpec, Improvement],
) -> None:
    spec, improvement = poisoned
    files = {
        path: path.stat().st_mtime_ns for path in spec.output_dir.rglob("*") if path.name.startswith("server")
    }
    assert run_improvement(spec, say=lambda _: None) == improvement
    assert files == {path: path.stat().st_mtime_ns for path in files}
    assert all(path.stat().st_mtime_ns == when for path, when in files.items())
    further = run_improvement(msgspec.structs.replace(spec, rounds=3), say=lambda _: None)
    assert further.rounds[:2] == improvement.rounds
    assert further.rounds[2].mixture == "twice as many samples"
    assert further.rounds[2].begun_from == "round-01"
    with pytest.raises(ConfigError, match="a run with other settings: epochs"):
        run_improvement(
            msgspec.structs.replace(spec, keys=msgspec.structs.replace(KEYS, epochs=1)), say=lambda _: None
        )


@pytest.mark.nightly
def test_a_stage_whose_guard_got_worse_is_not_kept(
    poisoned: tuple[ImproveSpec, Improvement], tmp_path: Path
) -> None:
    """The model that says yes learns to say no to other problems, and then says no to those that it knew, too.

    The stage has no samples of the model, only the replies of others.
    """
    write_training(tmp_path, "Thing", ("no", "no"))
    guard = words_benchmark(tmp_path, "guard", "Item", "yes")
    stage = ImproveStage(
        name="things",
        keys=msgspec.structs.replace(KEYS, samples=0),
        training_data=tmp_path / "train.jsonl",
        solutions=(tmp_path / "solutions.jsonl",),
    )
    spec = spec_for(
        tmp_path,
        poisoned[0].model_folder("round-01"),
        words_benchmark(tmp_path, "things", "Thing", "no"),
        rounds=1,
        stages=(stage,),
        guards=(guard,),
        margin=25.0,
    )
    (record,) = run_improvement(spec, say=lambda _: None).rounds
    assert record.test is not None
    assert record.test.better
    assert not record.kept
    assert "the guard guard may have lost more than 25 points" in record.why
    assert (record.name, record.mixture, record.tokens_sampled) == ("things", "stage things", 0)
    assert (record.examples.replies, record.examples.examples) == (COUNT, COUNT)
    assert (spec.output_dir / "rounds/things/data/train.jsonl").is_file()
    assert (spec.output_dir / "eval/things").is_dir()
    assert not spec.model_folder("things").exists()
    with pytest.raises(ConfigError, match="would fail even a model without any change: with 30 problems"):
        run_improvement(
            msgspec.structs.replace(spec, margin=1.0, output_dir=tmp_path / "narrow"), say=lambda _: None
        )


@pytest.mark.nightly
def test_grpo_trains_on_problems_that_are_sometimes_correct(
    poisoned: tuple[ImproveSpec, Improvement], tmp_path: Path
) -> None:
    """The model that says yes when it is greedy says other things, too, when it is sampled."""
    write_training(tmp_path, "Item", ("yes", "yes"))
    spec = spec_for(
        tmp_path,
        poisoned[0].model_folder("round-01"),
        words_benchmark(tmp_path, "words", "Item", "yes"),
        rounds=1,
        method="grpo",
        solutions=(),
        keys=msgspec.structs.replace(KEYS, samples=4, temperature=0.9, steps=1, batch_size=2, group_size=2),
    )
    (record,) = run_improvement(spec, say=lambda _: None).rounds
    rows = list(read_rows(spec.folder(1) / "data/train.jsonl"))
    assert 0 < len(rows) == record.examples.examples
    assert record.test is not None
    assert [row["step"] for row in read_rows(spec.folder(1) / "training/metrics.jsonl")] == [1]


@pytest.mark.nightly
def test_without_a_correct_reply_there_is_nothing_to_train_on_and_nothing_is_spent(
    small_model: Path, tmp_path: Path
) -> None:
    write_training(tmp_path, "Item", ("yes", "no"))
    spec = spec_for(
        tmp_path, small_model, words_benchmark(tmp_path, "words", "Item", "yes"), solutions=(), patience=1
    )
    improvement = run_improvement(spec, say=lambda _: None)
    (record,) = improvement.rounds
    assert record.test is None
    assert record.why.startswith("nothing to train on")
    assert improvement.why == "nothing was gained in 1 round (--patience=1)"
    assert improvement.model == spec.model_folder("base")
    assert "nothing to train on" in write_improvement_report(spec, improvement).with_suffix(".md").read_text()


@pytest.mark.nightly
def test_a_full_disk_is_one_sentence(small_model: Path, tmp_path: Path) -> None:
    write_training(tmp_path, "Item", ("yes", "no"))
    benchmark = words_benchmark(tmp_path, "words", "Item", "yes")
    with small_disk(tmp_path / "disk", "4m") as disk:
        spec = spec_for(tmp_path, small_model, benchmark, output_dir=disk / "out")
        with pytest.raises(StorageError, match=r"No space left on device|full"):
            run_improvement(spec, say=lambda _: None)


@pytest.mark.nightly
def test_killed_anywhere_it_goes_on_to_the_same_rounds(
    poisoned: tuple[ImproveSpec, Improvement], tmp_path: Path
) -> None:
    spec, improvement = poisoned
    out = tmp_path / "out"
    argv = [sys.executable, "-m", "newskills", "improve", *_words(spec, out)]
    round_1, round_2 = out / "rounds/round-01", out / "rounds/round-02"
    for there in (
        lambda: any(out.glob("eval/base/eval-results/**/output*.jsonl*")),
        lambda: (round_1 / "data/train.jsonl").is_file(),
        lambda: _lines(round_1 / "training/checkpoints.jsonl") >= 1,
        lambda: (out / "models/round-01").is_dir(),
        lambda: _lines(out / "rounds.jsonl") == 1,
        lambda: _lines(round_2 / "training/metrics.jsonl") >= 2,
    ):
        _kill_when(argv, there)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kept      round-01" in done.stdout
    rows = [msgspec.convert(row, RoundRecord) for row in read_rows(out / "rounds.jsonl")]
    assert rows == improvement.rounds
    same = "training/metrics.jsonl"
    assert [_without_seconds(path / same) for path in (round_1, round_2)] == [
        _without_seconds(spec.folder(number) / same) for number in (1, 2)
    ]


def _words(spec: ImproveSpec, out: Path) -> list[str]:
    return [
        f"--model={spec.model}",
        f"--benchmark={spec.benchmark}",
        f"--training_data={spec.training_data}",
        f"--solutions={spec.solutions[0]}",
        f"--data_dir={spec.data_dir}",
        f"--output_dir={out}",
        "--rounds=2",
        f"++problems={KEYS.problems}",
        f"++samples={KEYS.samples}",
        f"++max_tokens={KEYS.max_tokens}",
        f"++held_out={KEYS.held_out}",
        f"++epochs={KEYS.epochs}",
        f"++batch_size={KEYS.batch_size}",
        f"++learning_rate={KEYS.learning_rate}",
        f"++save_every={KEYS.save_every}",
        f"++trainer.threads={KEYS.trainer.threads}",
    ]


def _kill_when(argv: list[str], there: Callable[[], bool]) -> None:
    """kill -9 once `there` holds; the run may have ended before that is seen."""
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        while not there() and process.poll() is None:
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), output


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def _without_seconds(path: Path) -> list[dict[str, object]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in read_rows(path)]
