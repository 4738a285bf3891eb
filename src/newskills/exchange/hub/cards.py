# SPDX-License-Identifier: Apache-2.0
"""Cards of data sets and models: README.md with a head that the hub reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from newskills._version import __version__
from newskills.base.tables import Cells, markdown_table
from newskills.base.terminal import printable


def dataset_card(repo: str, tables: Mapping[str, int], runs: Sequence[Cells], scores: Sequence[Cells]) -> bytes:
    """Return the card of a data set of samples. `tables`: name → rows; `runs` and `scores`: rows of tables, with a
    head."""
    first = "samples"
    names = sorted(tables, key=lambda name: name != first)
    head = {
        "pretty_name": repo.rpartition("/")[2],
        "tags": ["newskills", "evaluation", "model-outputs"],
        "configs": [
            {
                "config_name": name,
                "data_files": f"data/{name}.parquet",
                **({"default": True} if name == first else {}),
            }
            for name in names
        ],
    }
    body = f"""
# {_one_line(repo.rpartition("/")[2])}

Samples of language models on benchmarks, with questions, replies, expected answers and verdicts.
Written by `ns push` of newskills {__version__}.

> **Do not train on it.** It holds problems of benchmarks with their answers. Replies are what models wrote, unfiltered.
> The problems belong to the benchmarks, under their licences.

## Runs

{_card_table(runs)}

## Scores

In percent, with 95 % intervals.

{_card_table(scores)}

## Tables

{_card_table([("table", "rows"), *((f"`{name}`", f"{tables[name]:,}") for name in names)])}

```python
from datasets import load_dataset

samples = load_dataset("{repo}", "samples", split="train")
```

Columns, units and their meaning: the page "Analyse results" of newskills (schema in the metadata of the files).
"""
    return _card_bytes(head, body)


def model_card(repo: str, *, base_model: str, is_adapter: bool, method: str, scores: Sequence[Cells]) -> bytes:
    """Return the card of a model that was trained; `scores` may be empty."""
    tags = ["newskills"]
    if method:
        tags.append(method)
    head: dict[str, Any] = {"tags": tags, "pipeline_tag": "text-generation"}
    if base_model and "/" in base_model and not base_model.startswith((".", "/", "~")):
        head["base_model"] = base_model
    head["library_name"] = "peft" if is_adapter else "transformers"
    kind = "A LoRA adapter" if is_adapter else "A model"
    origin = f" of `{_one_line(base_model)}`" if base_model else ""
    trained = f"trained by {method}" if method else "trained"
    title = _one_line(repo.rpartition("/")[2])
    body = f"\n# {title}\n\n{kind}{origin}, {trained} with newskills {__version__}.\n"
    if scores:
        body += f"\n## Scores\n\nIn percent, with 95 % intervals.\n\n{_card_table(scores)}\n"
    return _card_bytes(head, body)


def _card_bytes(head: Mapping[str, Any], body: str) -> bytes:
    return f"---\n{yaml.safe_dump(dict(head), sort_keys=False, allow_unicode=True)}---\n{body}".encode()


def _card_table(rows: Sequence[Cells]) -> str:
    return "\n".join(markdown_table([[_one_line(str(cell)) for cell in row] for row in rows]))


def _one_line(text: str) -> str:
    """Return a text that stays in its line and cell of Markdown."""
    return printable(text).replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")
