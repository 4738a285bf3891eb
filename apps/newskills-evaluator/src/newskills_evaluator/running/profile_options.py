# SPDX-License-Identifier: Apache-2.0
"""The options of `ns evaluate`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from newskills.pipelines.options import doc


class ProfileEvaluateOptions(Struct, frozen=True, kw_only=True):
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
