# SPDX-License-Identifier: Apache-2.0
"""What the workers of the pool's tests run; addressed by module name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError, DataError


def make(config: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that does what `record["do"]` says."""
    if config.get("broken"):
        raise ConfigError("no such setting")

    def work(record: dict[str, Any]) -> dict[str, Any]:
        match record["do"]:
            case "echo":
                return {"value": record["value"], "pid": os.getpid()}
            case "spin":
                while True:
                    pass
            case "sleep":
                time.sleep(record["seconds"])
            case "once":
                # Hangs the first time, answers the second: what the flag file says.
                if not Path(record["flag"]).exists():
                    Path(record["flag"]).touch()
                    while True:
                        pass
            case "hoard":
                return {"value": len(bytearray(record["bytes"]))}
            case "raise":
                raise RuntimeError("boom")
            case "refuse":
                raise DataError("this record does not fit")
            case "die":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "exit":
                os._exit(3)
            case "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            case "big":
                return {"value": "x" * record["size"]}
            case "strange":
                return {"value": "\ud800"}
        return {"value": record.get("value")}

    return work
