# SPDX-License-Identifier: Apache-2.0
"""`ns run_cmd` on several nodes: each one is told which it is, and where they meet."""

from __future__ import annotations

import re
from pathlib import Path

from tests.commands.clusters import Place


def test_a_command_on_several_nodes_is_told_where_they_meet(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.config("slurm", "executor: slurm")
    line = "ns run_cmd --cluster=slurm --dry_run --show_scripts"
    shown = place.ns(f"{line} --num_nodes=2 --num_gpus=8 true").stdout
    assert "export NNODES=2\n" in shown
    for name, value in (("RANK", "rank"), ("ADDR", "node"), ("PORT", "meeting_port")):
        prefix = "NODE" if name == "RANK" else "MASTER"
        assert re.search(rf'export {prefix}_{name}="\$ref_main_{value}"', shown), shown
    assert re.search(r"\bMASTER_", place.ns(f"{line} true").stdout) is None
