# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.train.backends.trl.divided_cpu WORDS…`: `ns WORDS` where accelerate divides weights among processes
on a CPU, as torch can; by itself accelerate does so on GPUs only.
"""

from __future__ import annotations

import sys
from typing import Any

from accelerate import PartialState
from accelerate.utils import DistributedType

from newskills.cli import main

_begin: Any = PartialState.__init__


def _begin_as_gpus(self: PartialState, *args: Any, **options: Any) -> None:
    _begin(self, *args, **options)
    if self.distributed_type == DistributedType.MULTI_CPU:
        self.distributed_type = DistributedType.MULTI_GPU


if __name__ == "__main__":
    PartialState.__init__ = _begin_as_gpus
    sys.exit(main())
