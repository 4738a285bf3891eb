# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.train.backends.trl.loading_cpu MODEL FOLDER`: load a model as a training does, in one of several
processes, and write how much more memory of its own this process then has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.train.backends.trl.divided_cpu import PartialState, _begin_as_gpus

from newskills.train.backends.trl.model import load_model
from newskills.train.backends.trl.processes import process_count
from newskills.train.settings import TrainerSettings


def own_bytes() -> int:
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    PartialState.__init__ = _begin_as_gpus
    assert process_count() == 2
    import transformers  # noqa: F401 - what it takes is no part of the model
    from transformers.models.llama import modeling_llama  # noqa: F401

    before = own_bytes()
    model = load_model(Path(sys.argv[1]), TrainerSettings(weights="full", dtype="float32"))
    path = Path(sys.argv[2]) / os.environ["RANK"]
    path.write_text(str(own_bytes() - before))
