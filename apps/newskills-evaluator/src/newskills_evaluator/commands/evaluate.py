# SPDX-License-Identifier: Apache-2.0
"""`ns evaluate`: a config of NeMo Evaluator's launcher, at the place that a profile of env.toml describes."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from newskills.base.errors import UserError
from newskills.commands.command import Command
from newskills_evaluator.running.profile_options import ProfileEvaluateOptions

_PLACE = re.compile(r"\[(\d+)\](?=[^=]*=)", re.ASCII)


class _Evaluate(Command[ProfileEvaluateOptions], frozen=True, kw_only=True):
    def main(self, argv: Sequence[str]) -> int:
        """Run the command; a user error ends with exit code 1, as it does in the system whose command lines these
        are."""
        try:
            return super().main([_PLACE.sub(r".\1", word) if _is_override(word) else word for word in argv])
        except UserError as error:
            sys.stderr.write(f"error: {error}\n")
            return 1


def _is_override(word: str) -> bool:
    """Return whether a word sets an element of a list: `a[0].b=value` means `a.0.b=value`; what stands behind the
    first `=` stays as it is."""
    return "=" in word and not word.startswith("-") and "[" in word.partition("=")[0]


COMMAND = _Evaluate(
    name="evaluate",
    summary="Run a config of NeMo Evaluator's launcher: merge its defaults, resolve it with a profile of "
    "env.toml, show it, and run its tasks on this machine or on the profile's cluster. key.sub=value "
    "changes the config. In Python: newskills.profile_evaluate. (To evaluate without such a config, "
    "use ns eval; that is newskills.evaluate in Python.)",
    options=ProfileEvaluateOptions,
    run="newskills_evaluator.running.profile_evaluate:run",
    result="newskills_evaluator.running.profile_evaluate:evaluate_profile",
    any_keys=True,
    examples=(
        "ns evaluate -c my-evaluation.yaml --dry-run",
        "ns evaluate -t gsm8k target.api_endpoint.url=http://localhost:8000/v1 target.api_endpoint.model_id=my-model",
        "ns evaluate -c nemotron-3-nano-nemo-ray --run MY-CLUSTER deployment.checkpoint_path=/models/checkpoint",
    ),
)
