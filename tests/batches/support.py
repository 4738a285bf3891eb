# SPDX-License-Identifier: Apache-2.0
"""Runs that ask a double in batches, quickly."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.batches.anthropic_double import AnthropicProvider
from tests.batches.gemini_double import GeminiProvider
from tests.batches.openai_double import AzureProvider, OpenAIProvider
from tests.batches.providers import Provider
from tests.run.support import make_unit

from newskills.run.engine.batches import flow
from newskills.run.engine.batches.ledger import BatchRecord, read_records
from newskills.run.engine.execute import execute
from newskills.run.planning.spec import RunResult, RunSpec, Unit

KEYS = {
    "OPENAI_API_KEY": "sk-1234567",
    "AZURE_OPENAI_API_KEY": "az-1234567",
    "ANTHROPIC_API_KEY": "sk-ant-1234",
    "GEMINI_API_KEY": "AIza-1234",
}
PROVIDERS: dict[str, tuple[type[Provider], str]] = {
    "openai": (OpenAIProvider, "gpt-4.1-mini"),
    "azureopenai": (AzureProvider, "my-deployment"),
    "anthropic": (AnthropicProvider, "claude-haiku-4-5"),
    "gemini": (GeminiProvider, "gemini-2.5-flash"),
}


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Wait for nothing longer than a test can."""
    for name in ("QUIET_SECONDS", "FIRST_LOOK", "LONGEST_LOOK", "UNCONFIRMED_SECONDS", "FULL_PAUSE"):
        patch.setattr(flow, name, 0.02)
    patch.setattr("newskills.models.batch_apis.openai.READ_EVERY", 0.01)


def unit_at(folder: Path, provider: Provider, kind: str = "openai", **settings: Any) -> Unit:
    """A unit that asks `provider` in batches."""
    server = {"server_type": kind, "model": PROVIDERS[kind][1], "batch_api": True, **settings.pop("server", {})}
    inference = {"tokens_to_generate": 100, **settings.pop("inference", {})}
    return make_unit(folder, provider.url, server=server, inference=inference, **settings)


def run_units(*units: Unit, **settings: Any) -> tuple[RunResult, str]:
    """The result, and what the run said."""
    said = io.StringIO()
    spec = RunSpec(units=units, output_dir=str(units[0].merged.parent.parent), **settings)
    result = execute(spec, console=Console(file=said, width=300), environ=KEYS)
    return result, said.getvalue()


def records_of(folder: Path) -> list[BatchRecord]:
    """What the run has written of its batches, in their order."""
    return sorted(read_records(folder / "batches"), key=lambda record: record.written)
