# SPDX-License-Identifier: Apache-2.0
"""Code in processes of its own, for what a process can do to itself only once."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from newskills_sandbox.probes import Probe, run_probes

NOBODY = 65534
_PRELUDE = """
import ctypes, errno, json, os, signal, socket, sys, threading, time
from newskills_sandbox.inside import landlock, linux, seccomp

"".encode("idna")  # imported now: later its file may be out of reach
answers = {}

def attempt(name, action):
    "Records 0 (or what is said to be true) or the errno."
    try:
        value = action()
    except OSError as error:
        answers[name] = error.errno
    else:
        answers[name] = value if isinstance(value, (bool, str, list)) else 0

"""


def run(code: str, **values: Any) -> dict[str, Any]:
    """The `answers` that `code` leaves, run in a process where `values` are variables."""
    done = start(code, **values)
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def start(code: str, **values: Any) -> subprocess.CompletedProcess[str]:
    given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    script = f"{_PRELUDE}{given}{code}\nprint(json.dumps(answers))\n"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)


@functools.cache
def probes() -> dict[str, Probe]:
    return {probe.name: probe for probe in run_probes()}


def need(*names: str) -> None:
    """Skip the test where this machine refuses one of these."""
    for name in names:
        probe = probes().get(name)
        if probe is None or not probe.ok:
            pytest.skip(f"no {name} here: {probe.detail if probe else 'not probed'}")


def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
