# SPDX-License-Identifier: Apache-2.0
"""What a file was asked to be (its settings), and how the last process that worked on it ended."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.base.records import Ledger, Row, Usage
from newskills.base.store import write_json
from newskills.run.planning.config import CHAT, GenerationConfig

_PLAIN = (
    "prompt_format",
    "num_chunks",
    "chunk_id",
    "max_samples",
    "stop_phrase",
    "remove_stop_phrases",
    "parse_reasoning",
    "end_reasoning_string",
    "generation_key",
    "async_position_key",
    "structured_output",
    "start_assistant_response_key",
    "chat_template_kwargs",
)
_TOOLS = ("tool_modules", "tool_overrides", "schema_overrides", "max_tool_calls")
_SOUND = ("audio_chunk_task_types", "chunk_audio_threshold_sec")
_CODE = ("total_code_executions_in_prompt", "override_max_code_executions")
INPUT = "the content of the input file"
"""What differs, where the input does."""
PROMPT = "the prompt"
_NOT_SAMPLING = {"timeout", "stream", "cache_prompt"}
_COUNTED = {
    "num_input_tokens": "input_tokens",
    "num_generated_tokens": "output_tokens",
    "num_cached_tokens": "cached_tokens",
    "num_cache_written_tokens": "cache_written_tokens",
}
"""Fields of records → what a state counts of them."""
_canonical = msgspec.json.Encoder(order="deterministic")


class RunState(Struct, kw_only=True):
    """`<output>.run.json`: an exit record per process beside the settings that resumed work must share.

    settings       flat name → value; a resume with other values is refused
    grader         name, version and configuration that made the verdicts
    grade_fields   record fields that the grader wrote
    merged_rows    rows that all chunks have together
    size           bytes of the final file
    written        when the final file was written, in nanoseconds
    sums           checksums of its blocks (`damage.block_sums`)
    distinct_rows  rows of the input file if no two of them are alike, else 0 (a resume need not look again)
    unjudged       rows without a judgement because the judge refused them; another run asks again
    """

    status: Literal["running", "done", "failed", "interrupted", "stopped", "stopped_early"]
    settings: dict[str, Any]
    grader: str = ""
    grade_fields: list[str] = []
    rows: int = 0
    merged_rows: int | None = None
    size: int = 0
    written: int = 0
    sums: list[tuple[int, int]] = []
    distinct_rows: int = 0
    done: int = 0
    failures: int = 0
    unjudged: int = 0
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_written_tokens: int | None = None
    cost: float | None = None
    started: float = 0.0
    ended: float | None = None
    exit_code: int | None = None
    error: str = ""
    process: int = msgspec.field(default_factory=os.getpid)
    host: str = msgspec.field(default_factory=lambda: os.uname().nodename)

    @property
    def digest(self) -> str:
        """8 hex digits of the settings; records carry them until the file is finished."""
        return hashlib.blake2b(_canonical.encode(self.settings), digest_size=4).hexdigest()

    @property
    def usage(self) -> Usage:
        """Tokens of all processes, as far as servers have told."""
        return Usage(**{name: getattr(self, name) for name in _COUNTED.values()})

    def take_usage(self, used: Usage) -> None:
        """Take over these counts, unknown ones included."""
        for name in _COUNTED.values():
            setattr(self, name, getattr(used, name))

    def count_tokens(self, record: Row, prefix: str) -> None:
        """Add the tokens that the server reported, in fields whose names begin with `prefix`."""
        for field, name in _COUNTED.items():
            if (tokens := record.get(prefix + field)) is not None:
                setattr(self, name, (getattr(self, name) or 0) + tokens)

    def save(self, path: Path) -> None:
        write_json(path, self)


def usage_of(record: Row, prefix: str) -> Usage:
    """Return the tokens that a record counts, in fields whose names begin with `prefix`."""
    return Usage(**{name: record.get(prefix + field) for field, name in _COUNTED.items()})


def load_state(path: Path) -> RunState | None:
    """Load the state; None where there is none, or it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunState)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def asked_settings(
    config: GenerationConfig, *, input_digest: str, prompt: str, more_prompts: str = ""
) -> dict[str, Any]:
    """Return, by name, everything that decides what the model is asked; not where it runs and how long it may
    take.

    `more_prompts`: official prompts that the solver's settings name, with their hashes.
    """
    settings: dict[str, Any] = {
        "input_file": input_digest,
        "prompt": prompt,
        "more_prompts": more_prompts,
        "server.model": config.server.model,
    }
    settings |= {name: getattr(config, name) for name in _PLAIN}
    sampling = msgspec.to_builtins(config.inference)
    settings |= {f"inference.{name}": value for name, value in sampling.items() if name not in _NOT_SAMPLING}
    if config.solved_by != CHAT:
        settings |= {
            "solver": config.solved_by,
            "solver_config": config.solver_config,
            "code_tags": config.code_tags,
        }
    if config.forces_thinking:
        forcing = {"mark": config.end_reasoning_string, **_plain_value(config.budget_forcing)}
        settings |= {f"budget_forcing.{name}": value for name, value in forcing.items()}
    if config.selected_by:
        settings |= {"selected_by": config.selected_by, "solver_config": config.solver_config}
    if config.parallel_thinking.mode:
        thinking = _plain_value(config.parallel_thinking)
        settings |= {f"parallel_thinking.{name}": value for name, value in thinking.items()}
    if config.tool_modules:
        settings |= {name: _plain_value(getattr(config, name)) for name in _TOOLS}
    if config.audio_chunk_task_types and config.enable_audio_chunking:
        settings |= {name: _plain_value(getattr(config, name)) for name in _SOUND}
    if config.runs_code:
        settings |= {name: _plain_value(getattr(config, name)) for name in _CODE}
        code = _plain_value(config.server.code_execution)
        settings |= {f"server.code_execution.{name}": value for name, value in code.items()}
    return {name: value for name, value in settings.items() if value not in (None, {}, "")}


def setting_changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return what differs, in words: `inference.temperature: 0.0 → 0.7`."""
    words = []
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name == "input_file":
            words.append(INPUT)
        elif name == "prompt":
            words.append(f"{PROMPT} ({old} → {new})")
        else:
            words.append(f"{name} ({_shown_value(old)} → {_shown_value(new)})")
    return words


def _plain_value(value: Any) -> Any:
    """Return the value as it comes back from the JSON file."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _shown_value(value: Any) -> str:
    if value is None:
        return "unset"
    return str(value)
