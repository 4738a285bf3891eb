# SPDX-License-Identifier: Apache-2.0
"""The options of `ns scan` and `ns diagnose`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.pipelines.options import SERVER, DryRun, ModelOptions, doc


class ReaderOptions(Struct, frozen=True, kw_only=True):
    """Models that read results: those of an evaluation, on this machine only."""

    model: Annotated[list[str], doc("model that reads transcripts; of several, all must agree", SERVER)] = []
    server_type: Annotated[list[str], doc("openai, vllm, llamacpp, … (one, or one for each model)", SERVER)] = []
    server_address: Annotated[
        list[str], doc("address of a running server (one, or one for each model)", SERVER)
    ] = []
    server_gpus: Annotated[list[int], doc("start a server for the model, on this many GPUs", SERVER)] = []
    server_args: Annotated[list[str], doc("more arguments for a started server, passed on unchanged", SERVER)] = []
    server_timeout: Annotated[float, doc("seconds to wait for a started server", SERVER)] = 1800.0
    dry_run: DryRun = False

    def models(self) -> ModelOptions:
        """Return the same as options of a run."""
        return ModelOptions(
            model=self.model,
            server_type=self.server_type,
            server_address=self.server_address,
            server_gpus=self.server_gpus,
            server_args=self.server_args,
            server_timeout=self.server_timeout,
        )


class ScanOptions(ReaderOptions, frozen=True, kw_only=True):
    results_dir: Annotated[str, doc("folder of results", {"positional": True})]
    scanners: Annotated[
        list[str],
        doc(
            "refusal, loop, language_switch, truncated, empty_tool_output, tool_error_ignored, special_cased_tests, "
            "reads_gold, answer_in_prompt, not_extracted, format_lost, FILE.py::FUNCTION, or FILE.yaml with a question "
            "to --model (default: all by rule)"
        ),
    ] = []
    benchmarks: Annotated[str | None, doc("only these, comma separated (default: all)")] = None
    labels: Annotated[
        str | None, doc("file of labelled samples (JSONL: id, label): adds precision, recall and kappa")
    ] = None
    time_limit: Annotated[
        float, Meta(gt=0, description="seconds of CPU that a scanner by rule has for one sample")
    ] = 10.0
    json: Annotated[bool, doc("print the results as JSON")] = False


class DiagnoseOptions(ReaderOptions, frozen=True, kw_only=True):
    results_dirs: Annotated[
        list[str], doc("folder of results, and another one to compare with", {"positional": True})
    ]
    benchmarks: Annotated[str | None, doc("only these, comma separated (default: all)")] = None
    output: Annotated[
        str | None, doc("where the report goes, without an ending (default: diagnosis in the first folder)")
    ] = None
    json: Annotated[bool, doc("print the diagnosis as JSON")] = False
