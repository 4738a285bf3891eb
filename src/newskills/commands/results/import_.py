# SPDX-License-Identifier: Apache-2.0
"""`ns import PATH`: results of other evaluation systems, for tables with intervals beside our own."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.import_results import ImportOptions, import_results, run

COMMAND = Command(
    name="import",
    summary="Convert results of other systems into newskills records, so that ns summarize_results shows "
    "them with intervals and with their unscored samples: output folders of NeMo-Skills, samples of "
    "lm-evaluation-harness, logs of Inspect, outputs of EvalScope, bundles of nemo-evaluator. A "
    "sample without a verdict is unscored, not wrong.",
    options=ImportOptions,
    run=run,
    result=import_results,
    examples=(
        "ns import ~/lm-eval-out/my-model --output_dir imported",
        "ns import outputs/20260102_030405 --output_dir imported-evalscope",
        "ns import logs/2026-01-02_gsm8k.eval --score model_graded_fact",
    ),
)
