# SPDX-License-Identifier: Apache-2.0
"""`ns serve_evals`: evaluations for trainers, over HTTP."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.serving.serve_evals_options import ServeEvalsOptions

COMMAND = Command(
    name="serve_evals",
    summary="Evaluate models during training: slime and similar trainers POST /evaluate, the benchmarks of a "
    "request run in parallel against the trainer's router, and the metrics are returned. A repeated "
    "request joins the job that already runs.",
    options=ServeEvalsOptions,
    result="newskills.pipelines.serving.serve_evals:run_evaluation_server",
    examples=(
        "ns serve_evals --host=0.0.0.0 --open --port=9050 --output-root=/opt/skills-eval --max-concurrent-requests=512",
        "ns serve_evals --judge-server-address=http://judge:8000/v1 --judge-model=my-judge",
        "ns serve_evals --token-file=/run/secrets/evals --eval-args='++max_samples=50'",
    ),
)
