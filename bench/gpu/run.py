# SPDX-License-Identifier: Apache-2.0
"""Trainings on one GPU, ours and plain TRL: `bench/gpu/run.sh` installs the packages and calls this.

python -m bench.gpu.run --out FOLDER         all parts within --seconds; call it again for those that are left
python -m bench.gpu.run --out FOLDER --tiny  runs anywhere, says nothing

FOLDER gets a JSON file for each part as soon as it is done, and results.json with all of them, device and versions.
Exit code 0: complete; 75: parts are left, run it again; 1: a part has failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.gpu.figures import grpo_flops, peak_of, sft_flops
from bench.gpu.spec import MARK, SHAPE_05B, SHAPE_135M, TINY, VOCABULARY, Part, Work, make_model
from bench.measure import ROOT

SHAPES = {"0.5b": SHAPE_05B, "135m": SHAPE_135M, "tiny": TINY}
AGAIN = 75
GRACE = 60
"""Seconds after which a process that should have ended is stopped."""
PACKAGES = ("torch", "trl", "transformers", "peft", "accelerate", "datasets", "vllm")
FULL = Work(
    steps=12,
    batch=16,
    length=1024,
    problems=8,
    samples=8,
    prompt=64,
    tokens=128,
    micro=4,
    vocabulary=VOCABULARY,
)
SMALL = Work(
    steps=3,
    batch=4,
    length=32,
    problems=2,
    samples=4,
    prompt=6,
    tokens=8,
    micro=4,
    dtype="float32",
    warm=1,
    vocabulary=64,
    learning_rate=1e-2,
)
CURVE_STEPS = 30


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    out, end = Path(options.out), time.time() + options.seconds
    out.mkdir(parents=True, exist_ok=True)
    parts = all_parts(tiny=options.tiny)
    shape = "tiny" if options.tiny else options.shape
    model = Path(options.model) if options.model else out / f"model-{shape}"
    if not (model / "config.json").exists():
        make_model(model, SHAPES[shape], parts[0].work.vocabulary)
    failed = [part.name for part in parts if "failed" in (_record(out, part) or {})]
    for group in _groups([part for part in parts if _record(out, part) is None]):
        failed += _run(group, model, out, end)
    record = results(parts, out, model)
    (out / "results.json").write_text(json.dumps(record, indent=1))
    print(table(record))
    left = [part.name for part in parts if part.name not in record["parts"]]
    if failed:
        print(f"Failed: {', '.join(failed)}; remove their files in {out} to try again.")
        return 1
    if left:
        print(f"Left: {', '.join(left)}. The same command goes on with them.")
        return AGAIN
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.run")
    parser.add_argument("--out", default=str(ROOT / "bench/results/gpu"), help="folder of the results")
    parser.add_argument("--model", help="Hugging Face folder (default: random weights in --shape)")
    parser.add_argument("--shape", choices=[name for name in SHAPES if name != "tiny"], default="0.5b")
    parser.add_argument("--seconds", type=float, default=540.0, help="no part is started that may take longer")
    parser.add_argument("--tiny", action="store_true", help="a model of a few thousand weights on any machine")
    return parser.parse_args(argv)


def all_parts(*, tiny: bool) -> list[Part]:
    """Return the parts in the order of their worth: a run that is cut off has measured the first ones."""
    work = SMALL if tiny else FULL
    mixed = replace(work, mixed=True)
    vllm = replace(work, sampler="vllm")
    steps = SMALL.steps if tiny else CURVE_STEPS
    curve = replace(work, steps=steps, tokens=min(64, work.tokens), learning_rate=10 * work.learning_rate)
    rows = [
        ("sft", "ours", "sft", work, 20.0),
        ("sft", "plain", "sft", work, 20.0),
        ("grpo", "ours", "grpo", work, 90.0),
        ("grpo", "plain", "grpo", work, 90.0),
        ("padded", "ours", "sft", mixed, 20.0),
        ("packed", "ours", "sft", replace(mixed, packing=True), 20.0),
        ("vllm", "ours", "grpo", vllm, 120.0),
        ("vllm", "plain", "grpo", vllm, 120.0),
        ("curve", "ours", "grpo", curve, 120.0),
    ]
    can_vllm = find_spec("vllm") is not None and _device() != "cpu"
    return [
        Part(name=f"{name}-{side}", side=side, kind=kind, work=part, seconds=0.0 if tiny else seconds)
        for name, side, kind, part, seconds in rows
        if can_vllm or part.sampler != "vllm"
    ]


def _groups(parts: list[Part]) -> list[list[Part]]:
    """Put parts that one process can run together; vLLM does not give back all that it took."""
    groups: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        alone = part.name if part.work.sampler == "vllm" else ""
        groups.setdefault((part.side, alone), []).append(part)
    return list(groups.values())


def _run(group: list[Part], model: Path, out: Path, end: float) -> list[str]:
    """Run parts in one process; return the names of those that failed."""
    if time.time() + group[0].seconds > end:
        return []
    spec = out / "parts.json"
    spec.write_bytes(msgspec.json.encode(group))
    argv = [sys.executable, "-m", f"bench.gpu.{group[0].side}", str(spec), str(model), str(end)]
    failed = []
    with (out / f"{group[0].name}.log").open("w") as errors:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(MARK):
                    figures = json.loads(line.removeprefix(MARK))
                    (out / f"part-{figures['part']}.json").write_text(json.dumps(figures))
                    failed += [figures["part"]] if "failed" in figures else []
            code = process.wait(timeout=max(1.0, end + GRACE - time.time()))
        finally:
            process.kill()
    if code != 0:
        raise SystemExit(f"{group[0].side} failed:\n{(out / f'{group[0].name}.log').read_text()[-3000:]}")
    return failed


def _record(out: Path, part: Part) -> dict[str, Any] | None:
    path = out / f"part-{part.name}.json"
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def results(parts: list[Part], out: Path, model: Path) -> dict[str, Any]:
    """Return all figures: per part, ours beside plain TRL's, the estimates of memory beside what PyTorch took."""
    measured = {part.name: record for part in parts if (record := _record(out, part)) is not None}
    peak = peak_of(_device())
    for part in parts:
        record = measured.get(part.name, {"failed": ""})
        if "failed" in record:
            continue
        flops = sft_flops(model, part.work) if part.kind == "sft" else _grpo_flops(model, part.work, record)
        record["mfu"] = None if peak is None or part.work.mixed else flops / record["seconds"] / peak
        if record["gb"] and "estimate" in record:
            record["estimate_over_measured"] = record["estimate"] / (record["gb"] * 1e9)
    speed = {name: record["tokens_per_second"] for name, record in measured.items() if "failed" not in record}
    pairs = {
        "sft: ours / plain TRL": ("sft-ours", "sft-plain"),
        "grpo: ours / plain TRL": ("grpo-ours", "grpo-plain"),
        "grpo with vllm: ours / plain TRL": ("vllm-ours", "vllm-plain"),
        "grpo: vllm / transformers": ("vllm-ours", "grpo-ours"),
        "sft: packed / padded": ("packed-ours", "padded-ours"),
    }
    return {
        "device": _device(),
        "versions": {name: _version(name) for name in PACKAGES},
        "work": {part.name: msgspec.to_builtins(part.work) for part in parts},
        "parts": measured,
        "tokens_per_second": {
            label: speed[one] / speed[other]
            for label, (one, other) in pairs.items()
            if one in speed and other in speed
        },
    }


def _grpo_flops(model: Path, work: Work, record: dict[str, Any]) -> float:
    return grpo_flops(model, work, record["tokens"] / (work.problems * work.samples))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _device() -> str:
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"


def table(record: dict[str, Any]) -> str:
    lines = [
        record["device"],
        "",
        "| | s a step | tokens/s | MFU | peak GB | estimate / peak | curve: first, last five |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in record["parts"].items():
        if "failed" in row:
            lines.append(f"| {name} | {row['failed']} | | | | | |")
            continue
        mfu = "" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %"
        gb = "" if row["gb"] is None else f"{row['gb']:.1f}"
        ratio = f"{row['estimate_over_measured']:.2f}" if "estimate_over_measured" in row else ""
        first, last = (sum(part) / len(part) for part in (row["curve"][:5], row["curve"][-5:]))
        lines.append(
            f"| {name} | {row['seconds']:.3g} | {row['tokens_per_second']:,.0f} | {mfu} | {gb} | {ratio} | "
            f"{first:.3g}, {last:.3g} |"
        )
    lines += ["", *(f"{label}: {ratio:.2f} ×" for label, ratio in record["tokens_per_second"].items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
