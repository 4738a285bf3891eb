# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for NeMo Gym's programs."""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = """\
#!{python}
import json, os, sys, time, urllib.request
from pathlib import Path
name, words, state = Path(sys.argv[0]).name, sys.argv[1:], Path({state!r})
if words[:3] == ["eval", "run", "--help"]:
    sys.exit()
today = dict(ng_run="env start", ng_status="env status", ng_collect_rollouts="eval run --no-serve")
for old, command in today.items() if name == "gym" else ():
    if words[:len(command.split())] == command.split():
        name, words = old, words[len(command.split()):]
        break
options = dict(word.lstrip("+").split("=", 1) for word in words)
(state / name).write_text(json.dumps(words))
if name == "ng_run":
    if "die" in options:
        sys.exit(1)
    with urllib.request.urlopen(options["policy_base_url"] + "/models") as reply:
        (state / "models").write_bytes(reply.read())
    (state / "pid").write_text(str(os.getpid()))
    time.sleep(600)
elif name == "ng_status":
    ready = (state / "pid").exists() and "slow" not in os.environ
    print("2 healthy, 0 unhealthy" if ready else "0 healthy, 0 unhealthy")
else:
    Path(options["output_jsonl_fpath"]).write_text(Path(options["input_jsonl_fpath"]).read_text())
    sys.exit(int(options.get("code", "0")))
"""


OLD = ("ng_run", "ng_status", "ng_collect_rollouts")
NEW = ("gym",)


def make_gym(root: Path, names: tuple[str, ...] = NEW) -> tuple[Path, Path]:
    """A folder of NeMo Gym, in which its programs write what they were told, and the folder of the programs.

    What `gym` is told lies under the old names, without its own words.
    """
    folder, programs = root / "its gym", root / "bin"
    folder.mkdir()
    programs.mkdir()
    for name in names:
        program = programs / name
        program.write_text(PROGRAM.format(python=sys.executable, state=str(folder)))
        program.chmod(0o755)
    (root / "in.jsonl").write_text("{}\n")
    return folder, programs
