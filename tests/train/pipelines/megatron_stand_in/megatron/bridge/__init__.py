# SPDX-License-Identifier: Apache-2.0
"""Plays Megatron-Bridge: writes a folder that says how it was called, or breaks half-way."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class AutoBridge:
    def __init__(self, model: str) -> None:
        self.model = model

    @classmethod
    def from_hf_pretrained(cls, path: str, **more: Any) -> AutoBridge:
        return cls(path)

    @classmethod
    def import_ckpt(cls, hf_model_id: str, megatron_path: str, **more: Any) -> None:
        shown = {key: str(value) for key, value in more.items()}
        write(megatron_path, {"hf_model_id": hf_model_id, **shown})

    def export_ckpt(self, megatron_path: str, hf_path: str, show_progress: bool, strict: bool) -> None:
        write(hf_path, {"model": self.model, "megatron_path": megatron_path, "strict": strict})


def write(folder: str, called: dict[str, Any]) -> None:
    Path(folder).mkdir()
    (Path(folder) / "called.json").write_text(json.dumps(called))
    if os.environ.get("BREAKS"):
        raise RuntimeError("half-way")
