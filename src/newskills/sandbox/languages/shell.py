# SPDX-License-Identifier: Apache-2.0
"""Shell scripts, by bash where there is one."""

from __future__ import annotations

import shutil

from newskills.base.protocols import Execution
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.inside.programs import HERE
from newskills.sandbox.languages.language import Language, Message, installation, program


def _request(execution: Execution, config: SandboxConfig) -> Message:
    return program({"script.sh": execution.code}, (shutil.which("bash") or "/bin/sh", f"{HERE}script.sh"))


SHELL = Language(
    name="shell",
    request=_request,
    folders=lambda config: installation(shutil.which("bash")),
    failure="error",
)
