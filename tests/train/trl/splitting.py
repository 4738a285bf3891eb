# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.train.trl.splitting WORDS…`, by torchrun: a training whose weights are split over CPUs.

accelerate splits weights over accelerators only; here it is told that CPUs, which talk by gloo, are such.
"""

from __future__ import annotations

import sys
from typing import Any

from accelerate import PartialState
from accelerate.utils import DistributedType

from newskills.cli import main

made = PartialState.__init__


def as_accelerators(self: PartialState, *words: Any, **named: Any) -> None:
    made(self, *words, **named)
    self.distributed_type = DistributedType.MULTI_GPU


if __name__ == "__main__":
    PartialState.__init__ = as_accelerators
    sys.exit(main(sys.argv[1:]))
