# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M on this machine's CPU by `--server_type=transformers`, beside `lm_eval --model hf`: whole commands.

The same tasks of lm_eval, the same weights in float32. There is a figure only where both agree: log-probabilities to
`CLOSE`, greedy replies sign by sign.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.measure import NS, BenchError, Done, Line, Options, run, scratch

ROWS = {"choices": 50, "letters": 50, "replies": 32}
CLOSE = 1e-3
BATCH = 16
SHOWN = "lm_eval --model hf"
SHOTS = """Question: Anna has 3 boxes with 12 pencils each and gives 9 pencils to her brother. What is left?
Answer: She has 36 pencils and gives away 9, so 27 pencils are left.

Question: A train leaves at 9 o'clock and needs 3 hours. When does it arrive?
Answer: It needs 3 hours from 9 o'clock on, so it arrives at 12 o'clock.

"""
TASK = """task: bench_{name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
test_split: test
doc_to_text: "{{{{question}}}}"
"""
CHOICES = """output_type: multiple_choice
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
target_delimiter: " "
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
REPLIES = """output_type: generate_until
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n\\n"], max_gen_toks: 64, do_sample: false, temperature: 0.0}
metric_list: [{metric: exact_match}]
"""


def bench(options: Options) -> Iterator[Line]:
    for module in ("lm_eval", "torch", "transformers", "xllamacpp"):
        if find_spec(module) is None:
            raise BenchError(
                f"{module} is not installed here: pip install -e '.[transformers,lm-eval,train,local]'"
            )
    with scratch() as folder:
        model = weights(folder)
        for name, full in ROWS.items():
            rows = options.rows(full)
            write_task(folder, name, rows)
            done = ours(folder, name, model)
            mine = replies_of(next((folder / f"ours-{name}").rglob("output*.jsonl")), "responses")
            line = Line(bench="hf", what=f"{name}: {rows} rows", ours=done.cpu, unit="CPU s", better="less")
            if options.peers:
                line.beside, line.theirs = SHOWN, theirs(folder, name, model).cpu
                its = replies_of(next((folder / f"theirs-{name}").rglob("samples_*.jsonl")), "filtered_resps")
                difference = largest_difference(mine, its)
                line.what += f"; largest difference of a log-probability {difference:.0e}" * (name != "replies")
                line.what += "; replies equal" * (name == "replies")
                line.target, line.met = "≥ 1 ×", (line.ratio or 0) >= 1
            yield line


def weights(folder: Path) -> Path:
    """Convert the embedded model to a folder of transformers."""
    target = folder / "smollm2"
    run(
        [
            NS,
            "convert",
            "--input_model=smollm2",
            f"--output_model={target}",
            "--convert_from=gguf",
            "--convert_to=hf",
        ]
    )
    return target


def write_task(folder: Path, name: str, rows: int) -> None:
    draw = random.Random(7)
    lines = []
    for _ in range(rows):
        boxes, each, away = draw.randint(2, 9), draw.randint(3, 30), draw.randint(1, 5)
        left = boxes * each - away
        texts = [
            f"She has {boxes * each} pencils and gives away {away}, so {number} pencils are left."
            for number in (left, left + 2, boxes + each, abs(left - each))
        ]
        question = (
            f"Question: Maria has {boxes} boxes with {each} pencils each and gives {away} away. What is left?"
        )
        place = draw.randrange(4)
        texts[0], texts[place] = texts[place], texts[0]
        choices = texts
        if name == "letters":
            choices = ["A", "B", "C", "D"]
            question += "".join(f"\n{letter}. {text}" for letter, text in zip(choices, texts, strict=True))
        lines.append({"question": f"{SHOTS}{question}\nAnswer:", "choices": choices, "answer": place})
    source = folder / f"{name}.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = TASK.format(name=name, rows=source) + (REPLIES if name == "replies" else CHOICES)
    (folder / f"bench_{name}.yaml").write_text(task)


def ours(folder: Path, name: str, model: Path) -> Done:
    argv: list[str | Path] = [
        NS,
        "eval",
        f"--benchmarks=lm-eval:{folder / f'bench_{name}.yaml'}",
        "--server_type=transformers",
    ]
    argv += [f"--model={model}", f"--output_dir={folder / f'ours-{name}'}"]
    return run(argv, env=environment(folder), cwd=folder)


def theirs(folder: Path, name: str, model: Path) -> Done:
    argv: list[str | Path] = [Path(sys.executable).with_name("lm_eval"), "--model", "hf", "--device", "cpu"]
    argv += ["--batch_size", str(BATCH)]
    argv += ["--model_args", f"pretrained={model},dtype=float32", "--tasks", f"bench_{name}", "--log_samples"]
    argv += ["--include_path", folder, "--output_path", folder / f"theirs-{name}"]
    return run(argv, env=environment(folder), cwd=folder)


def environment(folder: Path) -> dict[str, str]:
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    return {**os.environ, **offline, "NEWSKILLS_DATA_DIR": str(folder / "data")}


def replies_of(path: Path, field: str) -> dict[str, list[Any]]:
    """Return the replies to each question."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row.get("doc") or row)["question"]: row[field] for row in rows}


def largest_difference(mine: dict[str, list[Any]], its: dict[str, list[Any]]) -> float:
    """Return the largest difference of log-probabilities. Raises BenchError for one that is not close, or for texts."""
    if mine.keys() != its.keys():
        raise BenchError(f"{len(mine)} rows here, {len(its)} there")
    largest = 0.0
    for question, replies in mine.items():
        for reply, other in zip(replies, its[question], strict=True):
            value, peer = reply[0], other
            if isinstance(value, list):
                largest = max(largest, abs(value[0] - float(peer[0])))
            elif value != peer:
                raise BenchError(f"other reply to {question[-80:]!r}:\n{value!r}\n{peer!r}")
    if largest > CLOSE:
        raise BenchError(f"log-probabilities differ by {largest}")
    return largest
