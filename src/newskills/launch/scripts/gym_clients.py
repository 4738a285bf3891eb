# SPDX-License-Identifier: Apache-2.0
"""Rollouts of NeMo Gym: its servers, and the collection of rollouts with a served policy, in one command.

The program is `gym` (https://docs.nvidia.com/nemo/gym/reference/cli-commands); versions before it have `ng_run`,
`ng_status` and `ng_collect_rollouts`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref, Script, Word
from newskills.launch.scripts.script import (
    Context,
    JobScript,
    SandboxScript,
    ServerScript,
    sandbox_secrets,
    server_secrets,
)
from newskills_sandbox.variables import HOST_VARIABLE, PORT_VARIABLE

GYM_PATH = "/opt/NeMo-RL/3rdparty/Gym-workspace/Gym"
"""Where NVIDIA's NeMo-RL images have NeMo Gym."""

COLLECT = """\
gym=$1 part=$2 deadline=$((SECONDS + $3)) run=("${@:5:$4}") collect=("${@:5+$4}")
cd -- "$gym" || exit
if [[ -f .venv/bin/activate ]]; then . .venv/bin/activate; fi
mkdir -p -- "$part" || exit
if gym eval run --help >/dev/null 2>&1; then
    run=(gym env start "${run[@]}") collect=(gym eval run --no-serve "${collect[@]}") state=(gym env status)
else
    run=(ng_run "${run[@]}") collect=(ng_collect_rollouts "${collect[@]}") state=(ng_status)
fi
"${run[@]}" &
servers=$!
stop() {
    kill "$servers" 2>/dev/null
    for ((left = 50; left; left--)); do
        kill -0 "$servers" 2>/dev/null || return
        sleep 0.2
    done
    kill -KILL "$servers"
}
trap stop EXIT
until status=$("${state[@]}" 2>&1); [[ $status =~ [1-9][0-9]*\\ healthy,\\ 0\\ unhealthy ]]; do
    if ! kill -0 "$servers" 2>/dev/null; then
        echo 'the servers of NeMo Gym have ended before they were ready' >&2
        exit 1
    fi
    if ((SECONDS >= deadline)); then
        printf 'the servers of NeMo Gym are not ready after %s s: %s\\n' "$3" "$status" >&2
        exit 1
    fi
    sleep 0.2
done
"${collect[@]}" || exit
mv -f -- "$part"/* "$(dirname -- "$part")" && rmdir -- "$part"
"""
"""Arguments: NeMo Gym's folder, the folder in which rollouts lie until they are complete, seconds until its servers
must be ready, the number of words for the program that starts them, these words, the words for the one that collects.
None of them is read by a shell."""


@dataclass(eq=False)
class NemoGymRolloutsScript(JobScript):
    """NeMo Gym's servers of `config_paths`, and once they are healthy, the collection, whose exit code counts.

    `output_file` is there only once it is complete; until then rollouts lie in a hidden folder beside it.

    extra_arguments    `+agent_name=… +limit=…` as text or words, for both
    server             policy, served in this job; server_address: one that runs already, with its /v1
    policy_api_key     stands in the process list; that of a `server` which asks for one travels in the environment
    policy_model_name  default: the name of `server`
    patience           seconds that NeMo Gym's servers may take
    """

    _: KW_ONLY
    config_paths: Sequence[str]
    input_file: str
    output_file: str
    extra_arguments: str | Sequence[str] = ""
    server: ServerScript | None = None
    server_address: str | None = None
    sandbox: SandboxScript | None = None
    gym_path: str = GYM_PATH
    policy_api_key: str = "dummy"
    policy_model_name: str | None = None
    patience: int = 1800

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path in (self.input_file, self.output_file) if path.startswith("/"))

    def build(self, context: Context) -> Script:
        """Build the script. Raises ConfigError."""
        if not self.config_paths:
            raise ConfigError(f"Command '{context.own}': NeMo Gym needs config_paths.")
        extra = self.extra_arguments
        more = shlex.split(extra) if isinstance(extra, str) else list(extra)
        keys = server_secrets(self.server, context)
        folder, name = os.path.split(self.output_file)
        part = os.path.join(folder, f".{name}.part")
        run = [f"+config_paths=[{','.join(self.config_paths)}]", *self._policy(context, keys), *more]
        collect = [
            f"+input_jsonl_fpath={self.input_file}",
            f"+output_jsonl_fpath={part}/{name}",
            *more,
        ]
        head = ("bash", "-c", COLLECT, "bash", self.gym_path, part, str(self.patience))
        env: dict[str, Word] = {}
        if self.sandbox is not None:
            env = {
                HOST_VARIABLE: context.ref(self.sandbox, "host"),
                PORT_VARIABLE: context.ref(self.sandbox, "port"),
            }
        secrets = (*keys, *sandbox_secrets(self.sandbox, context))
        return self._script((*head, str(len(run)), *run, *collect), context, env=env, secrets=secrets)

    def _policy(self, context: Context, keys: Sequence[str]) -> list[Word]:
        """Return the overrides for the model that is asked; `keys`: variables, which OmegaConf reads in NeMo Gym's own
        process."""
        words: list[Word] = []
        name = self.policy_model_name
        if self.server is not None:
            ref = context.ref(self.server)
            words.append(Ref(ref.component, ref.attribute, "+policy_base_url=", "/v1"))
            name = name or self.server.name
        elif self.server_address is not None:
            words.append(f"+policy_base_url={self.server_address}")
        key = f"${{oc.env:{keys[0]}}}" if keys else self.policy_api_key
        words.append(f"+policy_api_key={key}")
        if name:
            return [*words, f"+policy_model_name={name}"]
        return words
