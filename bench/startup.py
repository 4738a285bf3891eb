# SPDX-License-Identifier: Apache-2.0
"""CPU time until help is on the screen, and what a bare installation weighs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import ROOT, Line, Options, clean_env, least_cpu, run, scratch
from bench.peers import INSPECT, LM_EVAL, venv

HELP_MS, SIZE_MB, PACKAGES = 60.0, 80.0, 25
PEERS = ((LM_EVAL, "lm_eval"), (INSPECT, "inspect"))
COUNT = "import importlib.metadata as m; print(len({d.metadata['Name'] for d in m.distributions()}))"


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        python, env = bare_installation(folder), clean_env(folder)
        floor = 1000 * least_cpu([python, "-c", ""], 10, env=env)
        for words in (["--help"], ["list"]):
            ours = 1000 * least_cpu([python.with_name("ns"), *words], 10, env=env)
            line = help_line(f"ns {words[0]}", ours, "python itself", floor)
            line.target, line.met = f"≤ {HELP_MS:g} ms", ours <= HELP_MS
            yield line
            if words == ["--help"] and options.peers:
                for peer, command in PEERS:
                    theirs = 1000 * least_cpu([venv(peer) / command, "--help"], 2, env=env)
                    yield help_line("ns --help", ours, f"{peer.shown} --help", theirs)
        yield from weight(python)


def help_line(what: str, ours: float, beside: str, theirs: float) -> Line:
    return Line(bench="startup", what=what, ours=ours, unit="CPU ms", better="less", beside=beside, theirs=theirs)


def bare_installation(folder: Path) -> Path:
    """The Python of a fresh environment without pip, so that only what newskills brings is in it."""
    place = folder / "bare"
    run([sys.executable, "-m", "venv", "--without-pip", place])
    python = place / "bin" / "python"
    run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", ROOT])
    return python


def weight(python: Path) -> Iterator[Line]:
    site = next(python.parents[1].glob("lib/python*/site-packages"))
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) / 1e6
    count = int(run([python, "-c", COUNT]).output)
    line = Line(bench="startup", what="bare installation", ours=size, unit="MB", better="less")
    line.target, line.met = f"≤ {SIZE_MB:g} MB", size <= SIZE_MB
    yield line
    packages = Line(bench="startup", what="bare installation", ours=count, unit="packages", better="less")
    packages.target, packages.met = f"≤ {PACKAGES}", count <= PACKAGES
    yield packages
