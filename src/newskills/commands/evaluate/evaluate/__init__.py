# SPDX-License-Identifier: Apache-2.0
"""`ns evaluate`: a config of NeMo Evaluator's launcher, at the place that a profile of env.toml describes."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from newskills.base.errors import UserError
from newskills.commands.command import Command
from newskills.pipelines.options import doc


class Options(Struct, frozen=True, kw_only=True):
    config: Annotated[
        str | None,
        doc(
            "config: a path, or the name of one in evaluate_configs/ or of one that ships with newskills",
            {"short": "-c"},
        ),
    ] = None
    run: Annotated[
        str | None,
        doc(
            "profile of env.toml: submit there, show the logs, and exit with the exit code of the jobs",
            {"short": "-r"},
        ),
    ] = None
    batch: Annotated[
        str | None, doc("profile of env.toml: submit there, and print the invocation id", {"short": "-b"})
    ] = None
    dry_run: Annotated[bool, doc("check everything and show what would be done; run nothing", {"short": "-d"})] = (
        False
    )
    task: Annotated[
        list[str],
        doc(
            "run only this task: every task of that name; or name.1 = the second task of the config, if its "
            "name is `name`",
            {"short": "-t"},
        ),
    ] = []
    force_squash: Annotated[bool, doc("import the container images again")] = False


_PLACE = re.compile(r"\[(\d+)\](?=[^=]*=)", re.ASCII)


class _Evaluate(Command[Options], frozen=True, kw_only=True):
    def main(self, argv: Sequence[str]) -> int:
        """Run the command; a user error ends with exit code 1, as it does in the system whose command lines these
        are."""
        try:
            return super().main([_PLACE.sub(r".\1", word) if _is_override(word) else word for word in argv])
        except UserError as error:
            sys.stderr.write(f"error: {error}\n")
            return 1


def _is_override(word: str) -> bool:
    """`a[0].b=value` means `a.0.b=value`; what stands behind the first `=` stays as it is."""
    return "=" in word and not word.startswith("-") and "[" in word.partition("=")[0]


COMMAND = _Evaluate(
    name="evaluate",
    summary="Run a config of NeMo Evaluator's launcher: merge its defaults, resolve it with a profile of "
    "env.toml, show it, and run its tasks on this machine or on the profile's cluster. key.sub=value "
    "changes the config. In Python: newskills.profile_evaluate. (To evaluate without such a config, "
    "use ns eval; that is newskills.evaluate in Python.)",
    options=Options,
    run="newskills.commands.evaluate.evaluate.work:run",
    any_keys=True,
    examples=(
        "ns evaluate -c my-evaluation.yaml --dry-run",
        "ns evaluate -t gsm8k target.api_endpoint.url=http://localhost:8000/v1 target.api_endpoint.model_id=my-model",
        "ns evaluate -c nemotron-3-nano-nemo-ray --run MY-CLUSTER deployment.checkpoint_path=/models/checkpoint",
    ),
)
