# SPDX-License-Identifier: Apache-2.0
"""SFT and GRPO on a GPU, ours and plain TRL in one run: tokens a second, MFU, peak memory, learning curves.

python -m bench.gpu.training                        the 135M shape at real batch sizes
python -m bench.gpu.training --wider 3 --deeper 1   the same proportions, about 1.1 billion weights
python -m bench.gpu.training --model FOLDER         a model of yours
python -m bench.gpu.training --tiny                 runs anywhere, says nothing
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.gpu.figures import grpo_flops, peak_of, sft_flops
from bench.gpu.spec import SHAPE_135M, TINY, VOCABULARY, Work, make_model
from bench.measure import ROOT

SIDES = ("ours", "plain")
ALLOWED = 1.05
"""Times the seconds of plain TRL."""


def main(argv: Sequence[str] | None = None) -> int:
    """0 where both of our steps took at most 1.05 times as long as plain TRL's; always where the run is tiny."""
    given = parse(argv)
    work = _work(given)
    with tempfile.TemporaryDirectory() as place:
        model = Path(given.model) if given.model else _made(Path(place) / "model", given, work)
        spec = Path(place) / "spec.json"
        spec.write_bytes(msgspec.json.encode(work))
        found = {side: _side(side, spec, model) for side in SIDES}
        rows = [_row(kind, side, found[side][kind], model, work) for kind in ("sft", "grpo") for side in SIDES]
    record = {"device": _device(), "work": msgspec.to_builtins(work), "rows": rows}
    Path(given.out).write_text(json.dumps(record, indent=1))
    print(table(rows, record["device"]))
    slow = any(
        one["seconds"] > ALLOWED * other["seconds"] for one, other in zip(rows[::2], rows[1::2], strict=True)
    )
    return int(slow and not given.tiny)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.training")
    parser.add_argument("--model", help="Hugging Face folder (default: random weights in the 135M shape)")
    parser.add_argument("--wider", type=int, default=1, help="times the width of the 135M shape")
    parser.add_argument("--deeper", type=int, default=1, help="times its layers")
    parser.add_argument("--weights", choices=("lora", "full"), default="lora")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64, help="(sft) sequences of a step")
    parser.add_argument("--length", type=int, default=1024, help="(sft) tokens of a sequence")
    parser.add_argument("--problems", type=int, default=32, help="(grpo) of a step")
    parser.add_argument("--samples", type=int, default=16, help="(grpo) of a problem")
    parser.add_argument("--tokens", type=int, default=256, help="(grpo) of a sample")
    parser.add_argument("--micro", type=int, default=16, help="sequences of a forward pass")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="a model of a few thousand weights on any machine")
    parser.add_argument("--out", default=str(ROOT / "bench/results/gpu-training.json"))
    return parser.parse_args(argv)


def _work(given: argparse.Namespace) -> Work:
    if given.tiny:
        return Work(
            steps=4,
            batch=4,
            length=16,
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
    return Work(
        steps=given.steps,
        batch=given.batch,
        length=given.length,
        problems=given.problems,
        samples=given.samples,
        prompt=128,
        tokens=given.tokens,
        micro=given.micro,
        weights=given.weights,
        checkpointing=given.checkpointing,
        vocabulary=_vocabulary(Path(given.model)) if given.model else VOCABULARY,
    )


def _vocabulary(model: Path) -> int:
    found: int = json.loads((model / "config.json").read_text())["vocab_size"]
    return found


def _made(folder: Path, given: argparse.Namespace, work: Work) -> Path:
    shape = dict(TINY if given.tiny else SHAPE_135M)
    for name in shape:
        shape[name] *= given.deeper if name == "num_hidden_layers" else given.wider
    return make_model(folder, shape, work.vocabulary)


def _side(side: str, spec: Path, model: Path) -> dict[str, Any]:
    argv = [sys.executable, "-m", f"bench.gpu.{side}", str(spec), str(model)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{side} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _row(kind: str, side: str, found: dict[str, Any], model: Path, work: Work) -> dict[str, Any]:
    """tokens_per_second: tokens trained on in a step / its seconds (grpo: of completions; sampling counts as time)."""
    if kind == "sft":
        tokens, flops = float(work.batch * work.length), sft_flops(model, work)
    else:
        tokens = work.problems * work.samples * found["completion"]
        flops = grpo_flops(model, work, found["completion"])
    peak = peak_of(_device())
    return {
        "kind": kind,
        "side": side,
        "seconds": found["seconds"],
        "tokens_per_second": tokens / found["seconds"],
        "mfu": None if peak is None else flops / found["seconds"] / peak,
        "gib": found["gib"],
        "curve": found["curve"],
    }


def _device() -> str:
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"


def table(rows: Sequence[dict[str, Any]], device: str) -> str:
    lines = [
        f"{device}",
        "| | | s a step | tokens/s | MFU | peak GiB | curve: first, last |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mfu = "" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %"
        curve = f"{row['curve'][0]:.3g}, {row['curve'][-1]:.3g}"
        lines.append(
            f"| {row['kind']} | {row['side']} | {row['seconds']:.3g} | {row['tokens_per_second']:,.0f} | {mfu} | "
            f"{row['gib']:.1f} | {curve} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
