# SPDX-License-Identifier: Apache-2.0
"""`python -m bench [NAME …] [--quick] [--no-peers] [--write-docs]`: the table, and bench/results/latest.json."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from bench.measure import RESULTS, ROOT, BenchError, Line, Options

USUAL = (
    "bare_client",
    "end_to_end",
    "refusals",
    "startup",
    "prepare",
    "grading",
    "library",
    "instructions",
    "choices",
    "summarize",
    "sandbox",
    "rewards",
    "gateway",
    "training_data",
)
LONG = (
    "agents",
    "analysis",
    "growth",
    "harness_tasks",
    "hf",
    "isolation",
    "lines",
    "load_test",
    "many",
    "memory",
    "mutation",
    "resume",
    "launch",
    "simulation",
    "training",
    "trust",
    "view",
)
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
HEADS = ("bench", "what", "ours", "beside", "theirs", "ratio", "target", "met")


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all benches that ran met their targets; 1 when one did not, or gave no figure.

    `reinforce` has options of its own, and takes hours.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["reinforce"]:
        code: int = import_module("bench.reinforce").main(words[1:])
        return code
    arguments = parse(argv)
    options = Options(peers=arguments.peers, quick=arguments.quick)
    lines, failed, load = [], [], os.getloadavg()[0]
    if load > 0.5:
        print(f"other work is running here (load {load:.1f}): wall times come out too long", file=sys.stderr)
    for name in arguments.names or USUAL:
        print(f"{name} …", file=sys.stderr)
        try:
            lines += list(import_module(f"bench.{name}").bench(options))
        except BenchError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
    print(table(lines))
    save(lines, failed, load)
    if arguments.write_docs:
        write_docs(lines)
    return int(bool(failed) or any(line.met is False for line in lines))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *USUAL, *LONG], help=f"default: {' '.join(USUAL)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows: does it run at all?")
    parser.add_argument(
        "--no-peers", dest="peers", action="store_false", help="do not install and run other tools"
    )
    parser.add_argument("--write-docs", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    return parser.parse_args(argv)


def cells(line: Line) -> list[str]:
    theirs = "" if line.theirs is None else f"{figure(line.theirs)} {line.unit}"
    ratio = "" if line.ratio is None else f"{line.ratio:.2f} ×" if line.ratio < 10 else f"{line.ratio:.0f} ×"
    met = {True: "yes", False: "NO", None: ""}[line.met]
    return [
        line.bench,
        line.what,
        f"{figure(line.ours)} {line.unit}",
        line.beside,
        theirs,
        ratio,
        line.target,
        met,
    ]


def figure(value: float) -> str:
    """Three significant digits, thousands apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(lines: Sequence[Line]) -> str:
    rows = [list(HEADS), *map(cells, lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    notes = [f"{line.what}: {line.note}" for line in lines if line.note]
    return "\n".join([shown[0], "-" * len(shown[0]), *shown[1:], *([""] if notes else []), *notes])


def markdown(lines: Sequence[Line]) -> str:
    rows = [list(HEADS), ["---"] * len(HEADS), *map(cells, lines)]
    notes = [f"- {line.what}: {line.note}" for line in lines if line.note]
    head = f"Measured on {datetime.date.today().isoformat()}: {machine()}."
    return "\n".join([head, "", *(f"| {' | '.join(row)} |" for row in rows), "", *notes])


def machine() -> str:
    """CPU model, cores that this process may use, memory, Python."""
    models = [part for part in Path("/proc/cpuinfo").read_text().splitlines() if part.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return (
        f"{model}, {cores} cores, {memory:.0f} GiB, Linux {platform.release()}, Python {platform.python_version()}"
    )


def save(lines: Sequence[Line], failed: Sequence[str], load: float) -> None:
    """`load` is the machine's load average before the first bench."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    shown = [{**msgspec.to_builtins(line), "ratio": line.ratio} for line in lines]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    document = {"date": now, "machine": machine(), "load": load, "failed": failed, "lines": shown}
    (RESULTS / "latest.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def write_docs(lines: Sequence[Line]) -> None:
    """Replaces what stands between the markers of the page."""
    page = PAGE.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the markers {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n{markdown(lines)}\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
