# SPDX-License-Identifier: Apache-2.0
"""A real model on this machine's CPU, two benchmarks, several seeds, a table: the main job without any set-up."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.config.layers import Layer
from newskills.models.serving import ServeSpec
from newskills.models.serving.spec import DEFAULT_SLOTS
from newskills.run.evaluate import EvaluationOutcome, EvaluationSpec, evaluate, plan_evaluation
from newskills.run.hosting.roles import HostedServers
from newskills.run.planning.plan import BenchmarkRun

MODEL = "smollm2"
SERVING = {"max_concurrent_requests": DEFAULT_SLOTS}
FETCH = FetchOptions(retries=1, timeout=15.0)

READING_TEXT = """3/3 done. What the table says:
{what}
  pass@1[avg-of-k] is the share of right answers; the interval holds the true value in 95 % of such runs.
  A model of 135M parameters knows little: the point is that every number is real, has its interval, and
  lost nothing on the way.

  records   {out}/eval-results/<benchmark>/output-rs0.jsonl
  metrics   {out}/eval-results/<benchmark>/metrics.json

Next:
{activate}  ns view {out}   read the samples, and why each was graded so
  ns prepare_data reasoning-gym.easy-product
  ns eval --benchmarks=reasoning-gym.easy-product:2 --server_type=llamacpp --model={model} --output_dir=out \\
      ++max_samples=50 ++inference.tokens_to_generate=64
  ns eval --benchmarks=gsm8k:4 --server_type=vllm --server_address=http://HOST:8000/v1 --model=NAME
  ns list benchmarks        what there is to evaluate
  ns generate --help        make data with a model"""


class QuickstartBenchmark(Struct, frozen=True):
    """A benchmark of the quickstart: `rows` of it, `samples` seeds, at most `tokens` new tokens an answer."""

    name: str
    rows: int
    samples: int
    tokens: int
    why: str

    def problems(self, share: float) -> int:
        """Return the number of problems, at `share` of the usual number."""
        return max(2, round(self.rows * share))


QUICKSTART_BENCHMARKS = (
    QuickstartBenchmark(
        "reasoning-gym.easy-sum", 50, 4, 48, "sums of two digits, generated here, so the model cannot know them"
    ),
    QuickstartBenchmark("gsm8k", 10, 2, 256, "grade-school mathematics; far too hard for a model of this size"),
)


class QuickstartSpec(Struct, frozen=True, kw_only=True):
    """Where the results go, which model, and the share of the usual number of rows (1.0 = all)."""

    output_dir: Path
    model: str = MODEL
    data_dir: Path | None = None
    share: float = 1.0
    timeout: float = 300.0


def run_quickstart_evaluation(spec: QuickstartSpec, *, say: PrintLine) -> EvaluationOutcome:
    """Prepare data, serve the model, evaluate, and report; a benchmark without data is left out with a note.

    Raises NewskillsError where nothing can be evaluated.
    """
    say(f"1/3 data: {', '.join(part.name for part in QUICKSTART_BENCHMARKS)}")
    ready = [
        (part, run) for part in QUICKSTART_BENCHMARKS if (run := _prepare_benchmark(part, spec, say)) is not None
    ]
    if not ready:
        raise DataError(
            "No benchmark could be prepared.", hint="See the notes above; ns doctor shows what is missing."
        )
    say(f"2/3 evaluating {spec.model} on this machine's CPU; Ctrl-C stops, the same command resumes")
    hosting = HostedServers(
        spec=ServeSpec(model=spec.model, server_type="llamacpp"),
        log=spec.output_dir / "eval-logs/server.log",
        timeout=spec.timeout,
    )
    evaluation = evaluate(
        plan_evaluation(
            EvaluationSpec(
                runs=[run for _, run in ready],
                output_dir=spec.output_dir,
                layers=[
                    Layer("quickstart", {"server.server_type": "llamacpp", "server.model": spec.model, **SERVING})
                ],
                hosting=hosting,
                log_dir=str(spec.output_dir / "eval-logs"),
                resume_with="ns quickstart --no_train",
            )
        ),
        say=say,
    )
    say(_explain_scores(evaluation, [part for part, _ in ready], spec))
    return evaluation


def _prepare_benchmark(part: QuickstartBenchmark, spec: QuickstartSpec, say: PrintLine) -> BenchmarkRun | None:
    """Return the run of the benchmark cut to its share; None, with a note, where its data cannot be had."""
    benchmark = get_benchmark(part.name)
    try:
        prepared = prepare(benchmark, data_dir=spec.data_dir, splits=[benchmark.split], options=FETCH)
    except (DataError, ConfigError) as error:
        say(f"note: {part.name} is left out: {error}")
        return None
    limits = {"max_samples": part.problems(spec.share), "inference.tokens_to_generate": part.tokens}
    cut = msgspec.structs.replace(benchmark, defaults={**benchmark.defaults, **limits})
    return BenchmarkRun(
        name=benchmark.name,
        benchmark=cut,
        samples=part.samples,
        split=benchmark.split,
        input_file=prepared.splits[0].path,
    )


def _explain_scores(evaluation: EvaluationOutcome, parts: list[QuickstartBenchmark], spec: QuickstartSpec) -> str:
    """Return the text that says what the numbers mean, and what to type next."""
    what = "\n".join(f"  {part.name}: {part.why} ({part.samples} samples per problem)" for part in parts)
    if evaluation.exit_code:
        return f"3/3 not finished: {evaluation.message}"
    return READING_TEXT.format(what=what, out=spec.output_dir, model=spec.model, activate=activation_line())


def activation_line() -> str:
    """Return the line to type first where a shell would not find this `ns`; else an empty text."""
    script = Path(sys.prefix) / "bin" / "activate"
    ns_program = shutil.which("ns")
    if not script.is_file() or (ns_program is not None and Path(ns_program).parent == script.parent):
        return ""
    here = Path.cwd()
    shown_path = script.relative_to(here) if script.is_relative_to(here) else script
    return f"  source {shown_path}\n"
