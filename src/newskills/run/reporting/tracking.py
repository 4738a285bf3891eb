# SPDX-License-Identifier: Apache-2.0
"""Metrics to Weights & Biases, only where the user gave a name. Nothing else is ever uploaded."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import AuthError, ConfigError
from newskills.base.records import Report, Row
from newskills.base.store import read_rows, write_json

MAX_SAMPLES = 200


class Tracking(Struct, frozen=True, kw_only=True):
    """Where to log: run `name` of `group` in `project`; `samples`: also 200 records of the first seed."""

    name: str
    project: str
    group: str | None = None
    samples: bool = False


def check_tracking(environ: Mapping[str, str]) -> bool:
    """Return whether to track: False where the user switched W&B off. Raises ConfigError (extra missing), AuthError (no
    key)."""
    if environ.get("WANDB_DISABLED", "").lower() in ("1", "true") or environ.get("WANDB_MODE") == "disabled":
        return False
    if find_spec("wandb") is None:
        raise ConfigError("Weights & Biases needs the package wandb.", hint="Run: pip install 'newskills[wandb]'")
    logged_in = environ.get("WANDB_API_KEY") or environ.get("WANDB_MODE") == "offline" or _logged_in()
    if not logged_in:
        raise AuthError(
            "There is no key for Weights & Biases.",
            hint="Run wandb login, set WANDB_API_KEY, or set WANDB_DISABLED=true.",
        )
    return True


def resume_run(tracking: Tracking) -> Any:
    """Begin the run at Weights & Biases; one of the same name goes on."""
    import wandb

    run_id = "-".join(part for part in (tracking.name, tracking.group, tracking.project) if part)
    return wandb.init(
        project=tracking.project,
        name=tracking.name,
        group=tracking.group,
        id=run_id.replace("/", "-"),
        resume="allow",
    )


def log_reports(tracking: Tracking, reports: Sequence[Report], outputs: Mapping[str, Path]) -> None:
    """Log `<benchmark>/<mode>/<metric>` as summary values and, over k, as lines; `outputs`: file with samples."""

    run = resume_run(tracking)
    for report in reports:
        for mode, metrics in report.modes.items():
            run.summary.update(
                {f"{report.benchmark}/{mode}/{key}": value for key, value in _number_items(metrics)}
            )
        for k, values in over_k(report.modes).items():
            run.log({f"{report.benchmark}/{name}": value for name, value in values.items()} | {"k": k})
    if tracking.samples:
        for benchmark, path in outputs.items():
            _log_samples(run, benchmark, path)
    run.finish()


def over_k(modes: Mapping[str, Row]) -> dict[int, dict[str, float]]:
    """Return k → `pass@k/<metric>`, `majority@k/<metric>`, … for the plots over the number of samples."""
    lines: dict[int, dict[str, float]] = {}
    for mode, metrics in modes.items():
        family, _, rest = mode.partition("@")
        head, _, averaged = rest.partition("[avg-of-")
        text = averaged.rstrip("]") or head
        if text.isdecimal():
            kind = "pass@1[avg-of-k]" if averaged else f"{family}@k"
            lines.setdefault(int(text), {}).update(
                {f"{kind}/{name}": value for name, value in _number_items(metrics)}
            )
    return dict(sorted(lines.items()))


def _number_items(metrics: Row) -> list[tuple[str, float]]:
    return [(k, float(v)) for k, v in metrics.items() if isinstance(v, int | float) and not isinstance(v, bool)]


def _log_samples(run: Any, benchmark: str, path: Path) -> None:
    import wandb

    rows = list(islice(read_rows(path), 20_000))
    chosen = random.Random(0).sample(rows, min(MAX_SAMPLES, len(rows)))  # noqa: S311 - a sample to read, no secret
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "samples.json"
        write_json(file, chosen)
        artifact = wandb.Artifact(f"{benchmark.replace('.', '-')}-samples", type="samples")
        artifact.add_file(str(file), "samples.json")
        run.log_artifact(artifact)
        if not getattr(run, "offline", False):
            artifact.wait()


def _logged_in() -> bool:
    netrc = Path(os.environ.get("NETRC", Path.home() / ".netrc"))
    return netrc.is_file() and "api.wandb.ai" in netrc.read_text(errors="replace")
