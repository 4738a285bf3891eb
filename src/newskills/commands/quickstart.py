# SPDX-License-Identifier: Apache-2.0
"""`ns quickstart`: the main job on an embedded default."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.commands._command import Command
from newskills.commands._options import doc
from newskills.config.command_line import Parsed
from newskills.recipes.quickstart import MODEL, QuickstartSpec, quickstart

NEEDS = ("xllamacpp", "gguf", "reasoning_gym")


class Options(Struct, frozen=True, kw_only=True):
    output_dir: Annotated[str, doc("folder of the results; the same folder goes on where it was")] = (
        "results/quickstart"
    )
    model: Annotated[str, doc("smollm2, or the path of another .gguf file")] = MODEL
    data_dir: Annotated[str | None, doc("where prepared data lies")] = None
    share: Annotated[float, Meta(gt=0, le=10, description="share of the usual number of problems")] = 1.0


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if missing := [module for module in NEEDS if find_spec(module) is None]:
        raise ConfigError(
            f"The embedded model needs {', '.join(missing)}, which this environment lacks.",
            hint="Run: pip install 'newskills[local]'",
        )
    spec = QuickstartSpec(
        output_dir=Path(options.output_dir),
        model=options.model,
        data_dir=Path(options.data_dir) if options.data_dir else None,
        share=options.share,
    )
    evaluation = quickstart(spec, say=lambda text: print(text, flush=True))
    if evaluation.message:
        sys.stderr.write(f"{evaluation.message}\n")
    return evaluation.exit_code


COMMAND = Command(
    name="quickstart",
    summary="Serve a real 135M model on this machine's CPU, evaluate it on two benchmarks with several seeds, and "
    "print the table with intervals. Needs newskills[local]; no GPU, no account.",
    options=Options,
    run=run,
)
