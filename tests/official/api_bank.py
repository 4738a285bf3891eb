# SPDX-License-Identifier: Apache-2.0
"""API-Bank: calls of its dialogues and changed ones, each run by the authors' programs on fresh databases."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.official.recording import Case, commit, write

SOURCE = "github.com/AlibabaResearch/DAMO-ConvAI, api-bank"
_ATTEMPTS = 900
_STUBS = {
    "sentence_transformers": "SentenceTransformer = util = None\n",
    "googletrans": "LANGUAGES = {}\nclass Translator: pass\n",
    "nltk/__init__": "",
    "nltk/tokenize": "def word_tokenize(text): return text.split()\n",
}
"""In the place of what loads models or asks the network."""
_RUN = """
import copy, json, sys
sys.path[:0] = [{stubs!r}]
import tool_manager
for line in sys.stdin:
    name, arguments, gold = json.loads(line)
    manager = tool_manager.ToolManager()
    try:
        result = manager.api_call(name, **arguments)
        good = name == gold["api_name"] and manager.init_tool(name).check_api_call_correctness(result, gold["result"])
    except Exception:
        good = False
    print(json.dumps(bool(good)))
"""


def changed(
    name: str, arguments: dict[str, Any], others: list[dict[str, Any]], draw: random.Random
) -> dict[str, Any]:
    """`arguments` with up to one of them changed."""
    made = dict(arguments)
    if not made or draw.random() < 0.1:
        return made
    argument = draw.choice(sorted(made))
    value = str(made[argument])
    words = value.split(" ")
    ways = [
        value,
        f" {value}",
        f"{value} ",
        value.upper(),
        value.lower(),
        value.replace("-0", "-"),
        value.replace(" ", ""),
        value[1:],
        " ".join(words[1:]),
        f"{value} too",
        f"{value} and a lot of more",
        str(draw.choice(others).get(argument, "other")),
        "",
    ]
    made[argument] = draw.choice(ways)
    if draw.random() < 0.05:
        del made[argument]
    elif draw.random() < 0.03:
        made["more"] = "1"
    return made


def record(checkout: Path) -> int:
    """`checkout`: the folder api-bank. API_BANK_PYTHON names a Python with numpy, requests, rouge and rank_bm25."""
    draw = random.Random(3)
    calls: list[dict[str, Any]] = []
    for file in sorted((checkout / "lv1-lv2-samples/level-1-given-desc").glob("*.jsonl")):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        calls += [line for line in lines if line["role"] == "API"]
    golds = _run(checkout, [(call["api_name"], call["param_dict"], call) for call in calls])
    kept = [call for call, good in zip(calls, golds, strict=True) if good]
    refused = sorted({call["api_name"] for call, good in zip(calls, golds, strict=True) if not good})
    by_name: dict[str, list[dict[str, Any]]] = {}
    for call in kept:
        by_name.setdefault(call["api_name"], []).append(call["param_dict"])
    attempts = []
    for _ in range(_ATTEMPTS):
        call = draw.choice(kept)
        name = call["api_name"]
        arguments = changed(name, call["param_dict"], by_name[name], draw)
        attempts.append((name, arguments, call))
    verdicts = _run(checkout, attempts)
    cases: list[Case] = [
        {"name": name, "arguments": arguments, "gold": call["param_dict"], "official": good}
        for (name, arguments, call), good in zip(attempts, verdicts, strict=True)
    ]
    print(f"right calls that the original refuses: {golds.count(False)} of {len(golds)}: {', '.join(refused)}")
    return write("api_bank", SOURCE, commit(checkout), cases)


def _run(checkout: Path, calls: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> list[bool]:
    stubs = checkout / "stubs"
    for name, text in _STUBS.items():
        (stubs / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (stubs / f"{name}.py").write_text(text)
    python = os.environ.get("API_BANK_PYTHON", sys.executable)
    text = "".join(f"{json.dumps(call)}\n" for call in calls)
    command = [python, "-W", "ignore", "-c", _RUN.format(stubs=str(stubs))]
    done = subprocess.run(command, cwd=checkout, input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line in ("true", "false")]
