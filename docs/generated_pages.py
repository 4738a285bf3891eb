# SPDX-License-Identifier: Apache-2.0
"""Pages that the docs build makes from the code: of commands, benchmarks, their headlines, notebooks. None is a file.

MkDocs calls `on_files` (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newskills.benchmarks.pages import benchmark_pages as benchmark_pages
from newskills.benchmarks.pages import standing_page, stored_figures
from newskills.commands.loading import load_command
from newskills.commands.table import GROUPS, typed_words
from newskills.config.fields import Leaf, leaves
from newskills.config.help import OWN, by_group
from newskills.config.layers import render_value

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

FIGURES = Path(__file__).resolve().parents[1] / "tests" / "official" / "figures.json"
"""Of comparisons that docs/agreement.md does not show, made by `python -m tests.official --write`."""
EXAMPLES = {
    name: text.strip().replace("](", "](../")
    for page in (Path(__file__).resolve().parent / "examples" / "commands").glob("*.md")
    for name, text in re.findall(
        r"^## (\w+)\n(.*?)(?=^## |\Z)",
        page.read_text(encoding="utf-8").replace("<!-- nightly -->\n", ""),
        re.MULTILINE | re.DOTALL,
    )
}
"""Command → examples with their outputs, which tests/docs/test_examples.py compares."""
GENERAL = (
    ("`--help`, `--help=all`", "show the help, or all options"),
    ("`--explain`", "show where each value comes from, and stop"),
)
COMMAND_WIDTH = 100
KEYS = "Write sub-keys with a dot, lists as `[a,b]`, dictionaries as `{a:1}`."
NOTEBOOKS = Path(__file__).resolve().parent / "notebooks"


def generated_pages() -> dict[str, str]:
    """Return path below docs/ → markdown."""
    pages = command_pages() | {f"benchmarks/{name}": text for name, text in benchmark_pages().items()}
    pages["headlines.md"] = standing_page(stored_figures(FIGURES))
    return pages | notebook_pages()


def notebook_pages() -> dict[str, str]:
    """Return path below docs/ → markdown: texts, code and printed outputs of each notebook."""
    return {f"notebooks/{path.stem}.md": _notebook(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))}


def _notebook(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, _, rest = "".join(cells[0]["source"]).partition("\n")
    files = f"[Download this notebook]({path.name}) and [what makes its results](make_results.py)."
    blocks = [title, files, rest.strip(), *(block for cell in cells[1:] for block in _blocks(cell))]
    return "\n\n".join(blocks) + "\n"


def _blocks(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    printed = "".join(text for output in cell["outputs"] for text in output.get("text", ())).strip("\n")
    return [f"```python\n{source}\n```", *([f"```text\n{printed}\n```"] if printed else [])]


def command_pages() -> dict[str, str]:
    """Return path below docs/ → markdown: what each command is for, examples, and its options in groups."""
    lines: list[str] = []
    pages: dict[str, str] = {}
    for title, group in GROUPS.items():
        rows = [(f"[ns {typed_words(name)}]({name}.md)", text) for name, text in group.items()]
        lines += ["", f"## {_sentence(title)[:-1]}", "", *_table(("command", "what it does"), rows)]
        pages |= {f"commands/{name}.md": command_page(name) for name in group}
    last = "`ns COMMAND --help` shows the options of a command in the terminal."
    return pages | {"commands/index.md": "\n".join(["# Commands", "", last, *lines, ""])}


def command_page(name: str) -> str:
    """Return the page of a command."""
    command = load_command(name)
    first, *rest = re.split(r"(?<=[.!?]) (?=[A-Z`])", command.summary)
    example, _, guide = EXAMPLES.get(name, "").partition("Guide")
    more = [line for line in command.examples if line not in example]
    options = sorted(leaves(command.options).values(), key=lambda leaf: not leaf.required)
    keys = list(leaves(command.config).values()) if command.config else []
    words = [
        *(leaf.path.upper() + ("…" if leaf.is_list else "") for leaf in options if leaf.extra.get("positional")),
        "[options]",
        *(["[++key=value …]"] if keys or command.any_keys else []),
    ]
    lines = [
        f"# ns {typed_words(name)}",
        "",
        _text(first),
        "",
        "```text",
        f"ns {typed_words(name)} {' '.join(words)}",
        "```",
    ]
    lines += ["", _text(" ".join(rest))] if rest else []
    lines += ["", f"Guide{guide}"] if guide else []
    if example or more:
        lines += ["", "## Examples", "", *([example.strip()] if example else [])]
    if more:
        lines += [*(["", "More examples:", ""] if example else []), "```bash", *more, "```"]
    if often := command.essentials:
        rows = _option_rows(leaf for leaf in options if leaf.path in often)
        rows += _option_rows((leaf for leaf in keys if f"++{leaf.path}" in often), "++")
        lines += ["", "## Options that are used most", "", *_option_table(rows)]
    lines += ["", "## All options" if often else "## Options"]
    for title, group in by_group(options):
        lines += ["", *([] if title == OWN else [f"### {title[:1].upper()}{title[1:]}", ""])]
        lines += _option_table(_option_rows(group))
    lines += ["", "### General", "", *_table(("option", "meaning"), GENERAL)]
    if keys:
        lines += ["", "## `++` keys", "", KEYS]
    for prefix in dict.fromkeys(leaf.path.rpartition(".")[0] for leaf in keys):
        rows = _option_rows((leaf for leaf in keys if leaf.path.rpartition(".")[0] == prefix), "++")
        lines += ["", *([f"### `++{prefix}.`", ""] if prefix else []), *_option_table(rows)]
    return _fold_commands("\n".join(lines) + "\n")


def _folded(line: str) -> str:
    """Return a shell command broken before options that would pass COMMAND_WIDTH, never within single quotes."""
    lines = [""]
    for part in re.split(r" (?=(?:--|\+\+)(?:[^']*'[^']*')*[^']*$)", line):
        if lines[-1] and len(lines[-1]) + len(part) + 3 > COMMAND_WIDTH:
            lines.append(f"    {part}")
        else:
            lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)


def _fold_commands(text: str) -> str:
    """Fold the commands in the shell blocks of a page."""
    return re.sub(
        r"(?<=^```bash\n).*?(?=^```)",
        lambda block: "".join(f"{_folded(line)}\n" for line in block[0].splitlines()),
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def _option_rows(options: Iterable[Leaf], mark: str = "--") -> list[tuple[str, ...]]:
    """Return flag, value, default and meaning of each option."""
    rows: list[tuple[str, ...]] = []
    for leaf in options:
        flags = [leaf.extra["short"]] if "short" in leaf.extra else []
        flags.append(leaf.path.upper() if leaf.extra.get("positional") else f"{mark}{leaf.path}")
        choices = [] if leaf.is_bool else leaf.type_name.replace(" | null", "").replace(" ", "").split("|")
        several = [re.fullmatch(r"list\[(\w+)\]", choice) for choice in choices]
        choices = [f"{match[1]} …" if match else choice for match, choice in zip(several, choices, strict=True)]
        if leaf.required:
            default = "**required**"
        else:
            default = "" if leaf.default in (None, "", [], (), {}) else f"`{render_value(leaf.default)}`"
        rows.append((_codes(flags), _codes(choices), default, _text(leaf.description)))
    return rows


def _option_table(rows: Sequence[Sequence[str]]) -> list[str]:
    return _table(("option", "value", "default", "meaning"), rows)


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "&#124;") for cell in row) + " |" for row in cells]


def _text(text: str) -> str:
    """Return plain text as Markdown, with options and code in a monospaced font."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = re.compile(
        r"(?<![\w`-])((?:--[a-z][\w=-]*|\+\+[a-z][\w.=*]*)(?:\{[^}]*\})?|\[[\w, {}:…]+\]|\{[^}]*\})"
    )
    return "".join(
        part if part.startswith("`") else plain.sub(r"`\1`", html.escape(part, quote=False).replace("*", "\\*"))
        for part in parts
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of the folder."""
    from mkdocs.structure.files import File

    for path, text in generated_pages().items():
        files.append(File.generated(config, path, content=text))
    return files
