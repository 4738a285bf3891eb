# SPDX-License-Identifier: Apache-2.0
"""What `ns run_cmd` does. Apart from its options, so that help and completion load little."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import KW_ONLY, dataclass

from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref, Script, Word
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command
from newskills.launch.scripts.script import (
    BaseJobScript,
    Context,
    SandboxScript,
    ServerScript,
    sandbox_secrets,
    server_secrets,
)
from newskills.pipelines.models import serve_spec
from newskills.pipelines.own_command.options import RunCmdOptions
from newskills.pipelines.submission.groups import (
    MAIN,
    groups_of,
    meeting_env,
    sandbox_env,
    sandbox_script,
    server_script,
)
from newskills.pipelines.submission.job_command import job_functions, planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission

ADDRESS_VARIABLE = "NEMO_SKILLS_SERVER_ADDRESS"
_SHELL = re.compile(r"[\s;&|<>$`(]", re.ASCII)
"""What stands in a line for a shell, and hardly in the name of a program."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
BASE_URL_VARIABLE, MODEL_VARIABLE = "NEMO_SKILLS_OPENAI_BASE_URL", "NEMO_SKILLS_OPENAI_MODEL"


@dataclass(eq=False)
class OwnScript(BaseJobScript):
    """The user's command, which is told by variables where the server and the sandbox are; on several nodes also which
    one it is on, and where they meet (the names that torch reads).
    """

    _: KW_ONLY
    server: ServerScript | None = None
    address: str | None = None
    model: str | None = None
    sandbox: SandboxScript | None = None
    nodes: int = 1

    def build(self, context: Context) -> Script:
        script = super().build(context)
        env: dict[str, Word] = {**script.env, **sandbox_env(self.sandbox, context)}
        if self.span_group_nodes:
            env |= meeting_env(self.nodes, context)
        if self.server is not None:
            ref = context.ref(self.server)
            env |= {ADDRESS_VARIABLE: ref, BASE_URL_VARIABLE: Ref(ref.component, ref.attribute, "", "/v1")}
        elif self.address is not None:
            env |= {ADDRESS_VARIABLE: self.address, BASE_URL_VARIABLE: self.address}
        if self.model is not None:
            env[MODEL_VARIABLE] = self.model
        keys = server_secrets(self.server, context)
        secrets = sandbox_secrets(self.sandbox, context)
        return replace(script, env=env, secrets=(*script.secrets, *keys, *secrets))


def prepare(parsed: Parsed[RunCmdOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare one job. Raises ConfigError."""
    options = planned_options(parsed)
    if bool(options.words) == (options.command is not None):
        raise ConfigError(
            "No command is given. Write it after all options, or as --command.", hint="See: ns run_cmd --help"
        )
    inline = _command_words(options)
    if isinstance(inline, list) and _ASSIGNMENT.match(inline[0]):
        raise ConfigError(
            f"{options.words[0]} is not a program.",
            hint="Repeat an option with several values before each value here; for a bash text use --command=…",
        )
    server = None
    if options.model and not options.server_address:
        server = server_script(serve_spec(options, elsewhere=not cluster.properties.this_machine), options)
    sandbox = sandbox_script(options)
    model = next(iter(options.model), None)
    if server is not None:
        model = server.name
    several = options.num_nodes > 1
    script = OwnScript(
        inline,
        server=server,
        address=next(iter(options.server_address), None),
        model=model,
        sandbox=sandbox,
        installation_command=options.installation_command,
        span_group_nodes=several,
        nodes=options.num_nodes,
        port=0 if several else None,
        num_tasks_override=options.num_tasks if options.num_tasks > 1 else None,
    )
    workdir = os.getcwd() if cluster.properties.in_process else None
    client = Command(script, container=options.main_container or options.container, name=MAIN, workdir=workdir)
    groups = groups_of(
        client,
        options,
        server=server,
        sandbox=sandbox,
        gpus=options.num_gpus or 0,
        nodes=options.num_nodes,
        num_tasks=options.num_tasks,
    )
    name = options.expname or "script"
    plan = Plan()
    plan.add(name, groups, copies=options.dependent_jobs)
    text = shlex.join(inline) if isinstance(inline, list) else inline
    shown = {"command": text}
    return prepare_submission(name, plan, cluster, options, shown)


run, run_own_command = job_functions(prepare)


def _command_words(options: RunCmdOptions) -> list[str] | str:
    """Return the words of a program and its arguments, or a single text for bash where no program has that
    name."""
    if len(options.words) == 1 and _SHELL.search(options.words[0]) and shutil.which(options.words[0]) is None:
        return options.words[0]
    return options.words or options.command or ""
