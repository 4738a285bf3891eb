# SPDX-License-Identifier: Apache-2.0
"""What NeMo Evaluator reads the scores of a finished run with. Imported by it alone, so its types are there."""

from __future__ import annotations

from pathlib import Path

from nemo_evaluator.api.api_dataclasses import SAMPLE_OUTPUTS_DIR, EvaluationResult

from newskills_evaluator.results_yml import task_results, write_samples


def parse_output(output_dir: str) -> EvaluationResult:
    """Return the scores of all benchmarks below `output_dir` and write their samples beside them, in NeMo Evaluator's
    form.

    Raises DataError where nothing was scored, so that a run without a score does not end as a success.
    """
    folder = Path(output_dir)
    results = task_results(folder)
    write_samples(folder, folder / SAMPLE_OUTPUTS_DIR)
    return EvaluationResult.model_validate(results)
