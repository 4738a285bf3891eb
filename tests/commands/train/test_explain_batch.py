# SPDX-License-Identifier: Apache-2.0
"""`ns grpo --explain_batch STEP`: the command of a training with one more option."""

from pathlib import Path

import pytest
from tests import forkserver
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import read_rows, write_rows

GRPO = [
    *("grpo", "--model=model", "--training_data=problems.jsonl", "--output_dir=out", "++eval_type=exact"),
    *("++max_tokens=1", "++steps=4", "++group_size=4", "++batch_size=4", "++learning_rate=0.05", "++held_out=20"),
    *("++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(tmp_path / "problems.jsonl", [{"question": f"AB{n}", "expected_answer": "H"} for n in range(100)])
    return tmp_path


def test_a_step_is_explained_by_the_command_that_trained(place: Path) -> None:
    early = forkserver.ns([*GRPO, "--explain_batch=2"], cwd=place)
    assert early.returncode == 2
    assert "out has no training to explain" in early.stderr
    trained = forkserver.ns(GRPO, cwd=place)
    assert trained.returncode == 0, trained.stderr
    assert "step 4: held-out reward" in trained.stderr
    assert "20 problems)" in trained.stderr
    explained = forkserver.ns([*GRPO, "--explain_batch=2"], cwd=place)
    assert explained.returncode == 0, explained.stderr
    first, _, group, *responses = explained.stdout.splitlines()
    row = next(row for row in read_rows(place / "out/metrics.jsonl") if row["step"] == 2)
    assert first.startswith(f"Step 2: 4 groups; reward {row['reward']:.3g}, spread {row['spread']:.3g}, ")
    assert group.startswith("Group 1, mean reward ")
    assert "→ H" in group
    assert all("  reward " in line and " pushed " in line for line in responses[:4])
    other = forkserver.ns([*GRPO, "--explain_batch=2", "++seed=3"], cwd=place)
    assert (other.returncode, "other settings: seed" in other.stderr) == (2, True)
