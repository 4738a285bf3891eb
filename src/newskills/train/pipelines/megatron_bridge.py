# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.train.pipelines.megatron_bridge import|export …`: Hugging Face folder ↔ Megatron checkpoint.

By Megatron-Bridge (https://github.com/NVIDIA-NeMo/Megatron-Bridge, 0.3 or later), which Megatron-LM names in place of
the converter that it dropped in May 2026. One process on the CPU; the checkpoint is distributed (`torch_dist`), so that
a training loads it at any tensor and pipeline parallel size. Apart from Megatron-Bridge, standard library only.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODULE = "newskills.train.pipelines.megatron_bridge"
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def parse_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="megatron_bridge", description="Convert by Megatron-Bridge.")
    parser.add_argument("direction", choices=["import", "export"])
    parser.add_argument("--hf-model", required=True, help="model to import; or the one with the same architecture")
    parser.add_argument("--megatron-path", required=True)
    parser.add_argument("--hf-path", default="", help="folder to write (export)")
    parser.add_argument("--dtype", choices=list(DTYPES), default="bf16")
    parser.add_argument("--trust-remote-code", action="store_true")
    parser.add_argument(
        "--not-strict", action="store_true", help="export although weights are missing or left over"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the whole folder or nothing; return the exit code."""
    options = parse_options(argv)
    target = Path(options.hf_path if options.direction == "export" else options.megatron_path)
    if target.exists():
        return _report_failure(f"{target} already exists. Give another folder.")
    if options.direction == "export" and not Path(options.megatron_path).is_dir():
        return _report_failure(f"{options.megatron_path} is no folder.")
    try:
        import torch
        from megatron.bridge import AutoBridge  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        return _report_failure(
            f"this container cannot convert: {error}. It needs Megatron-Bridge, as NVIDIA's NeMo images have it; or "
            "--installation_command='pip install megatron-bridge'."
        )
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _convert_weights(AutoBridge, torch, options, temporary)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sys.stderr.write(f"megatron_bridge: wrote {target}\n")
    return 0


def _convert_weights(bridge: Any, torch: Any, options: argparse.Namespace, target: Path) -> None:
    loading = {"trust_remote_code": True} if options.trust_remote_code else {}
    if options.direction == "import":
        dtype = getattr(torch, DTYPES[options.dtype])
        bridge.import_ckpt(options.hf_model, str(target), torch_dtype=dtype, device_map="cpu", **loading)
        return
    model = bridge.from_hf_pretrained(options.hf_model, **loading)
    model.export_ckpt(options.megatron_path, str(target), show_progress=False, strict=not options.not_strict)


def _report_failure(text: str) -> int:
    sys.stderr.write(f"megatron_bridge: {text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
