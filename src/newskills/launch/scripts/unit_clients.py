# SPDX-License-Identifier: Apache-2.0
"""Several units of work in one command, as NeMo-Skills' evaluation client has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from newskills.base.plan import Script, Word
from newskills.launch.job_script import read_bash_resource
from newskills.launch.scripts.script import Context, JobScript

_RUN_UNITS = """\
mode=$1 code=0 pids=() stopped=
shift
trap stopped=yes TERM INT
exec {gate}<> <(:)
ended() { # a signal interrupts wait before its time
    until wait "$1"; do
        local found=$?
        kill -0 "$1" 2>/dev/null || { code=$found; return; }
    done
}
while (($#)) && [[ -z $stopped ]]; do
    unit=("${@:2:$1}")
    shift "$(($1 + 1))"
    "${unit[@]}" {gate}<&- &
    pids+=("$!")
    await_child "$!" "$gate"
    [[ -z $stopped ]] || kill -s TERM -- "$!" 2>/dev/null
    if [[ $mode == sequential ]]; then ended "$!"; pids=(); fi
done
for pid in "${pids[@]}"; do ended "$pid"; done
exit "$code"
"""
"""Words of each unit follow their number; no word is read by a shell. Signals go to the whole process group, so units
get them without our help; what has not begun by then does not begin."""


@dataclass(eq=False)
class EvalClientScript(JobScript):
    """Runs `units` at once or one after the other, all of them to their end. Exit code: the last failing unit's."""

    units: Sequence[JobScript]
    single_node_mode: Literal["parallel", "sequential"] = "parallel"
    _: KW_ONLY

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for unit in self.units for path in unit.paths))

    def build(self, context: Context) -> Script:
        """Build the script that runs the units. Raises ConfigError."""
        built = [unit.build(context) for unit in self.units]
        words: list[Word] = []
        for script in built:
            words += [str(len(script.argv)), *script.argv]
        setups = dict.fromkeys([self.installation_command or "", *(script.setup for script in built)])
        env = {name: value for script in built for name, value in script.env.items()}
        return self._script(
            ("bash", "-c", read_bash_resource("await_child") + _RUN_UNITS, "bash", self.single_node_mode, *words),
            context,
            env=env,
            secrets=tuple(dict.fromkeys(name for script in built for name in script.secrets)),
            setup="\n".join(setup for setup in setups if setup),
        )
