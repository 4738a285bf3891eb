# SPDX-License-Identifier: Apache-2.0
"""What `ns critpt export|submit` does: send code for CritPt to its grading service, or write the batch."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct

from newskills.base import aio
from newskills.base.errors import ConfigError
from newskills.base.records import Number
from newskills.base.store import read_rows, write_json
from newskills.config.command_line import Parsed
from newskills.pipelines.arguments import read_json
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.options import DryRun, doc
from newskills.run.harnesses.critpt import (
    SERVICE_URL,
    CritPtService,
    service_accuracy,
    service_batch,
    submit_batch,
)


class CritptOptions(Struct, frozen=True, kw_only=True):
    action: Annotated[
        Literal["export", "submit"],
        doc(
            "export: write the batch that the service accepts; submit: write it and send it", {"positional": True}
        ),
    ]
    input_file: Annotated[str, doc("graded JSONL of one seed, with all problems", {"positional": True})]
    output_file: Annotated[str, doc("export: file for the batch; submit: file for the service's answer")]
    model_name: Annotated[str, doc("name of the model")] = "newskills"
    generation_config: Annotated[str, doc("JSON of settings to send with the batch (temperature, …)")] = ""
    api_url: Annotated[str, doc("address of the service")] = SERVICE_URL
    request_timeout: Annotated[float, doc("seconds to wait for the answer")] = 600.0
    dry_run: DryRun = False


class CritPtFile(Struct, frozen=True, kw_only=True):
    """The batch, or the answer of the service with its accuracy in percent."""

    output: Path
    problems: int
    accuracy: Number | None = None


def export_or_submit_batch(parsed: Parsed[CritptOptions]) -> CritPtFile | None:
    """Write the batch, or send it and write the answer; return the file, None for a dry run.

    Raises ConfigError where a verdict would be overwritten, DataError (rows), ModelError (service).
    """
    options = parsed.options
    source, target = Path(options.input_file), Path(options.output_file)
    if options.dry_run:
        steps: list[Step] = [("reads", source, ""), ("writes", target, "")]
        if options.action == "submit":
            steps.insert(1, ("sends", options.api_url, "70 functions"))
        show_dry_run(steps)
        return None
    body = service_batch(
        read_rows(source), options.model_name, read_json(options.generation_config, "--generation_config")
    )
    if options.action == "export":
        write_json(target, body)
        sys.stdout.write(f"{target}: {len(body['submissions'])} functions for {SERVICE_URL}\n")
        return CritPtFile(output=target, problems=len(body["submissions"]))
    if target.exists():
        raise ConfigError(
            f"{target} already exists; the service accepts ten batches a day.", hint="Give another --output_file."
        )
    service = CritPtService(url=options.api_url, timeout=options.request_timeout)
    answer = aio.run(lambda: submit_batch(body, service, dict(os.environ)))
    write_json(target, answer)
    number = service_accuracy(answer)
    lost = f", {number.unscored} unscored by the service" if number.unscored else ""
    sys.stdout.write(
        f"accuracy {number.value:.1f} % ({number.low:.1f} to {number.high:.1f}) of {number.n} problems{lost}\n"
    )
    return CritPtFile(output=target, problems=number.n, accuracy=number)
