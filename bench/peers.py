# SPDX-License-Identifier: Apache-2.0
"""Other tools, pinned, each in a virtual environment of its own under bench/.venvs that is made at first use."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from bench.measure import BenchError

VENVS = Path(__file__).parent / ".venvs"


class Peer(Struct, frozen=True, kw_only=True):
    """`requirements` are pip's words; `shown` is how the table calls it."""

    name: str
    shown: str
    requirements: tuple[str, ...]


LM_EVAL = Peer(name="lm-eval", shown="lm-eval 0.4.13", requirements=("lm-eval[api]==0.4.13",))
INSPECT = Peer(name="inspect", shown="inspect-ai 0.3.285", requirements=("inspect-ai==0.3.285", "openai==3.54.0"))
AIOHTTP = Peer(name="aiohttp", shown="aiohttp 3.14.5", requirements=("aiohttp==3.14.5",))
IPYKERNEL = Peer(
    name="ipykernel", shown="ipykernel 7.4.0", requirements=("ipykernel==7.4.0", "jupyter-client==8.10.0")
)

TRL = Peer(
    name="trl",
    shown="TRL 1.16.0",
    requirements=(
        "torch==2.13.0",
        "trl==1.16.0",
        "transformers==5.23.0",
        "peft==0.21.2",
        "accelerate==1.15.0",
        "datasets==5.2.0",
    ),
)


def venv(peer: Peer) -> Path:
    """The `bin` folder of the peer's environment. Raises BenchError where it cannot be installed."""
    mark = hashlib.sha256(" ".join([sys.version, *peer.requirements]).encode()).hexdigest()[:8]
    folder = VENVS / f"{peer.name}-{mark}"
    if not (folder / "complete").exists():
        print(f"installing {peer.shown} into {folder} …", file=sys.stderr)
        commands = (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(folder / "bin" / "pip"), "install", "--quiet", *peer.requirements],
        )
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BenchError(f"{peer.shown} cannot be installed here:\n{done.stderr[-1000:]}")
        (folder / "complete").touch()
    return folder / "bin"
