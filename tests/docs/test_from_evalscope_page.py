# SPDX-License-Identifier: Apache-2.0
"""The page for users of EvalScope: flags on the left are EvalScope's, those on the right ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from newskills.commands.loading import load_command
from newskills.config.fields import leaves
from newskills.run.planning.config import ALIASES, GenerationConfig

PAGE = (Path(__file__).parents[2] / "docs" / "from-evalscope.md").read_text(encoding="utf-8")
EVAL = (
    "model model-id model-args model-task chat-template datasets dataset-args dataset-dir dataset-hub "
    "generation-config eval-type eval-backend eval-config eval-batch-size limit repeats use-cache rerun-review "
    "work-dir no-timestamp enable-progress-tracker ignore-errors debug dry-run seed api-key api-url timeout stream "
    "judge judge-strategy judge-model-args analysis-report collect-perf no-collect-perf agent-config sandbox "
    "use-sandbox sandbox-type sandbox-manager-config"
)
PERF = (
    "model attn-implementation api tokenizer-path url port headers api-key connect-timeout read-timeout "
    "total-timeout no-test-connection scenario number parallel rate warmup-num enable-pd-metrics open-loop "
    "sleep-interval duration sla-auto-tune sla-variable sla-params sla-num-runs sla-upper-bound sla-lower-bound "
    "sla-fixed-parallel sla-number-multiplier db-commit-interval queue-size-multiplier in-flight-task-multiplier "
    "num-workers log-every-n-query debug visualizer wandb-api-key swanlab-api-key swanlab-host name alias "
    "enable-progress-tracker max-prompt-length min-prompt-length prefix-length prefix-count prompt query-template "
    "apply-chat-template image-width image-height image-format image-num image-patch-size outputs-dir no-timestamp "
    "dataset dataset-path data-source dataset-offset dataset-args frequency-penalty repetition-penalty logprobs "
    "max-tokens min-tokens n-choices seed stop stop-token-ids stream no-stream temperature top-p top-k extra-args "
    "tokenize-prompt multi-turn min-turns max-turns multi-turn-args"
)
"""Flags of EvalScope 1.14.1: `evalscope/arguments.py`, `evalscope/perf/arguments.py`."""
OPTION = re.compile(r"(?<![\w-])--([a-z][\w-]*)")
KEY = re.compile(r"\+\+([a-z][\w.]*)")


def rows(command: str) -> list[tuple[str, str]]:
    section = PAGE.partition(f"## `evalscope {command}`")[2].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ", 1) for line in section.splitlines() if line.startswith("| `")]
    return [(theirs, ours) for theirs, ours in cells if not theirs.startswith("`evalscope ")]


@pytest.mark.parametrize(("command", "flags"), [("eval", EVAL), ("perf", PERF)])
def test_flags_on_the_left_are_those_of_evalscope(command: str, flags: str) -> None:
    named = {flag for theirs, _ in rows(command) for flag in OPTION.findall(theirs)}
    assert len(named) > 20
    assert named <= set(flags.split())


@pytest.mark.parametrize(("command", "ours"), [("eval", "eval"), ("perf", "load_test")])
def test_flags_on_the_right_are_ours(command: str, ours: str) -> None:
    options = set(leaves(load_command(ours).options))
    switches = {f"no-{name}" for name in options} | {f"no_{name}" for name in options}
    keys = {*leaves(GenerationConfig), *ALIASES, "columns"}
    for _, cell in rows(command):
        assert set(OPTION.findall(cell)) <= options | switches, cell
        assert set(KEY.findall(cell)) <= keys, cell
