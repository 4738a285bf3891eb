# SPDX-License-Identifier: Apache-2.0
"""The options of `ns run_cmd`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import AtLeastOne, ModelOptions, doc


class RunCmdOptions(ModelOptions, frozen=True, kw_only=True):
    words: Annotated[
        list[str],
        doc("the command, after all options: word by word, or one quoted text for bash", {"positional": True}),
    ] = []  # noqa: RUF012 - copied
    command: Annotated[str | None, doc("the command as one text for bash (also --cmd)")] = None
    container: Annotated[str, doc("container to run it in")] = "nemo-skills"
    num_gpus: Annotated[int | None, doc("GPUs per node (default: those of the server)")] = None
    num_nodes: Annotated[AtLeastOne, doc("nodes; the command runs on each of them")] = 1
    num_tasks: Annotated[AtLeastOne, doc("processes of the command per node")] = 1
    get_random_port: Annotated[bool, doc("use any free port for the server (the default)")] = False
