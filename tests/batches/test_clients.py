# SPDX-License-Identifier: Apache-2.0
"""The providers' own clients as witnesses: what they send our doubles take, what these answer they read, and so
with the batches that we have submitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from tests.batches.providers import Provider, serving
from tests.batches.support import KEYS, PROVIDERS, hurry, records_of, run_units, unit_at
from tests.run.support import records, write_input

ROWS = 4
PROMPTS = [f"What is {number} + 1?" for number in range(ROWS)]


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def ours(folder: Path, provider: Provider, kind: str) -> tuple[str, list[str]]:
    """Ask in a batch of our own; return its handle and the answers."""
    write_input(folder, ROWS)
    unit = unit_at(folder, provider, kind)
    result, said = run_units(unit)
    assert result.exit_code == 0, said
    (record,) = records_of(folder)
    return record.handle, [row["generation"] for row in records(unit.merged)]


def openai_answers(client: Any, batch: Any) -> list[str]:
    lines = client.files.content(batch.output_file_id).text.splitlines()
    rows = sorted(map(json.loads, lines), key=lambda row: row["custom_id"])
    return [row["response"]["body"]["choices"][0]["message"]["content"] for row in rows]


@pytest.mark.parametrize("kind", ["openai", "azureopenai"])
def test_openai(tmp_path: Path, kind: str) -> None:
    with serving(PROVIDERS[kind][0]()) as provider:
        handle, answers = ours(tmp_path, provider, kind)
        key = KEYS["OPENAI_API_KEY" if kind == "openai" else "AZURE_OPENAI_API_KEY"]
        if kind == "openai":
            client: Any = openai.OpenAI(base_url=f"{provider.url}/v1", api_key=key, max_retries=0)
        else:
            client = openai.AzureOpenAI(
                azure_endpoint=provider.url, api_version="2024-10-21", api_key=key, max_retries=0
            )
        path = {"openai": "/v1/chat/completions", "azureopenai": "/chat/completions"}[kind]
        rows = [
            {
                "custom_id": f"c{number}",
                "method": "POST",
                "url": path,
                "body": {"model": "m", "messages": [{"role": "user", "content": prompt}]},
            }
            for number, prompt in enumerate(PROMPTS)
        ]
        file = client.files.create(file=("rows.jsonl", "\n".join(map(json.dumps, rows)).encode()), purpose="batch")
        while client.files.retrieve(file.id).status != "processed":
            pass
        batch = client.batches.create(input_file_id=file.id, endpoint=path, completion_window="24h")
        while batch.status != "completed":
            assert batch.status in ("validating", "in_progress")
            batch = client.batches.retrieve(batch.id)
        assert openai_answers(client, batch) == answers
        assert batch.request_counts.completed == ROWS
        # ours, as their client sees it
        (listed,) = [seen for seen in client.batches.list(limit=1) if seen.id == handle]
        assert listed.metadata["newskills_batch"].startswith("ns-")
        assert sorted(openai_answers(client, client.batches.retrieve(handle))) == sorted(answers)
        assert provider.batches[0].rows[0][1].keys() >= {"model", "messages"}


def test_anthropic(tmp_path: Path) -> None:
    with serving(PROVIDERS["anthropic"][0]()) as provider:
        handle, answers = ours(tmp_path, provider, "anthropic")
        client: Any = anthropic.Anthropic(base_url=provider.url, api_key=KEYS["ANTHROPIC_API_KEY"], max_retries=0)
        requests = [
            {
                "custom_id": f"c{number}",
                "params": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]},
            }
            for number, prompt in enumerate(PROMPTS)
        ]
        batch = client.messages.batches.create(requests=requests)
        while batch.processing_status != "ended":
            batch = client.messages.batches.retrieve(batch.id)
        for name, expected in ((batch.id, answers), (handle, answers)):
            results = list(client.messages.batches.results(name))
            assert {row.result.type for row in results} == {"succeeded"}
            assert sorted(row.result.message.content[0].text for row in results) == sorted(expected)
        assert handle in [seen.id for seen in client.messages.batches.list(limit=1)]


def test_gemini(tmp_path: Path) -> None:
    with serving(PROVIDERS["gemini"][0]()) as provider:
        handle, answers = ours(tmp_path, provider, "gemini")
        options = genai.types.HttpOptions(base_url=provider.url, api_version="v1beta")
        client = genai.Client(api_key=KEYS["GEMINI_API_KEY"], http_options=options)
        lines = tmp_path / "rows.jsonl"
        lines.write_text(
            "".join(
                json.dumps(
                    {"key": f"k{n}", "request": {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}}
                )
                + "\n"
                for n, prompt in enumerate(PROMPTS)
            )
        )
        file = client.files.upload(file=lines, config={"mime_type": "application/jsonl"})
        batch = client.batches.create(model="gemini-2.5-flash", src=file.name, config={"display_name": "theirs"})
        while batch.state.name != "JOB_STATE_SUCCEEDED":
            assert batch.state.name in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
            batch = client.batches.get(name=batch.name)
        for seen in (batch, client.batches.get(name=handle)):
            text = client.files.download(file=seen.dest.file_name).decode()
            got = [
                json.loads(line)["response"]["candidates"][0]["content"]["parts"][0]["text"]
                for line in text.splitlines()
            ]
            assert sorted(got) == sorted(answers)
        names = {seen.display_name for seen in client.batches.list(config={"page_size": 1})}
        assert names == {"theirs", records_of(tmp_path)[0].name}
