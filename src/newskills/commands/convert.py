# SPDX-License-Identifier: Apache-2.0
"""`ns convert`: a model in another file format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.commands._command import Command
from newskills.commands._dry_run import show_dry_run
from newskills.commands._options import DryRun, doc
from newskills.commands._training import require_train
from newskills.config.command_line import Parsed

Format = Literal["hf", "gguf"]


class Options(Struct, frozen=True, kw_only=True):
    input_model: Annotated[str, doc("Hugging Face folder, .gguf file, or smollm2")]
    output_model: Annotated[str, doc("folder (hf) or file (gguf) to write")]
    convert_from: Annotated[Format, doc("form of the input")]
    convert_to: Annotated[Format, doc("form of the output; gguf: matrices in F16")]
    dry_run: DryRun = False


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if options.convert_from == options.convert_to:
        raise ConfigError(f"From {options.convert_from} to {options.convert_to} there is nothing to convert.")
    target = Path(options.output_model)
    if options.dry_run:
        show_dry_run(
            [("reads", options.input_model, options.convert_from), ("writes", target, options.convert_to)]
        )
        return 0
    require_train("torch", "safetensors", "gguf")
    from newskills.models.serving.weights import resolve_weights
    from newskills.train.convert.from_gguf import gguf_to_hf
    from newskills.train.convert.to_gguf import hf_to_gguf

    if options.convert_from == "gguf":
        gguf_to_hf(resolve_weights(options.input_model, say=print), target)
    else:
        hf_to_gguf(Path(options.input_model), target)
    sys.stdout.write(f"{target}\n")
    return 0


COMMAND = Command(
    name="convert",
    summary="Convert a Llama model between a Hugging Face folder (float16, tokenizer and chat template included) and a "
    "GGUF file that the embedded server runs.",
    options=Options,
    run=run,
    examples=(
        "ns convert --input_model=smollm2 --output_model=models/base --convert_from=gguf --convert_to=hf",
        "ns convert --input_model=models/sft --output_model=models/sft.gguf --convert_from=hf --convert_to=gguf",
    ),
)
