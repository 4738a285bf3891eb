# SPDX-License-Identifier: Apache-2.0
"""What else is to be known of benchmarks and groups that lm_eval makes."""

from __future__ import annotations

from collections.abc import Mapping

from newskills.base.benchmark import Benchmark, Group
from newskills.base.lm_eval.building import HarnessTask, HarnessWishes
from newskills.benchmarks.lm_eval.names import task_slug


class HarnessBenchmark(Benchmark, frozen=True, kw_only=True):
    """A task of lm_eval.

    origin   where it is described
    wishes   how its documents become requests
    place    its folder below the data directory, with dots between the steps
    inputs   files of this machine that its rows are made of
    """

    origin: HarnessTask
    wishes: HarnessWishes
    place: str
    inputs: tuple[str, ...] = ()


class HarnessGroup(Group, frozen=True, kw_only=True):
    """A group of lm_eval; `tasks`: member → its benchmark."""

    tasks: Mapping[str, HarnessBenchmark]

    def short(self, member: str) -> str:
        """Return the name of `member` inside the group."""
        return task_slug(member)
