# SPDX-License-Identifier: Apache-2.0
"""What `ns convert` does: here between the forms that newskills knows, else as a job."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.launch.experiments import Experiment
from newskills.pipelines.conversion import jobs
from newskills.pipelines.conversion.options import ConvertOptions
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.placement.cluster import target_cluster
from newskills.pipelines.submission.submit import run_prepared
from newskills.train.pipelines.conversion import OWN


def run(parsed: Parsed[ConvertOptions]) -> int:
    """Convert; return the exit code. Raises ConfigError for arguments that this conversion does not take, DataError."""
    options = parsed.options
    if (options.convert_from, options.convert_to) not in OWN:
        return jobs.run(parsed)
    if options.arguments:
        raise ConfigError(f"unexpected word '{options.arguments[0]}': this conversion takes no extra arguments.")
    cluster = target_cluster(options, parsed.given)
    if cluster is not None:
        return run_prepared(jobs.prepare(parsed, cluster), show=("main",))
    target = Path(options.output_model)
    if options.dry_run:
        show_dry_run(
            [("reads", options.input_model, options.convert_from), ("writes", target, options.convert_to)]
        )
        return 0
    _convert_here(options, target)
    sys.stdout.write(f"{target}\n")
    return 0


def _convert_here(options: ConvertOptions, target: Path) -> None:
    """Convert between Hugging Face folders and GGUF, in this process. Raises ConfigError, DataError."""
    require_train("torch", "safetensors", "gguf")
    from newskills.models.serving.weights import resolve_weights
    from newskills.train.convert.from_gguf import gguf_to_hf
    from newskills.train.convert.to_gguf import hf_to_gguf

    if options.convert_from == "gguf":
        gguf_to_hf(resolve_weights(options.input_model, say=print), target)
    else:
        hf_to_gguf(Path(options.input_model), target)


def convert_model(parsed: Parsed[ConvertOptions]) -> Path | Experiment | None:
    """Convert for Python, and return the new model; the experiment, where it was submitted. Raises NewskillsError."""
    options = parsed.options
    if (options.convert_from, options.convert_to) in OWN and options.cluster in (None, "none"):
        run(parsed)
        if options.dry_run:
            return None
        return Path(options.output_model)
    return jobs.convert_in_job(parsed)
