# SPDX-License-Identifier: Apache-2.0
"""The options of `ns serve_gym`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from newskills.pipelines.options import NAME, AtLeastOne, DryRun, doc
from newskills.pipelines.serving.serve_rewards_options import Port, RewardKeys
from newskills.pipelines.serving.token import Open


class ServeGymOptions(Struct, frozen=True, kw_only=True):
    benchmark: Annotated[
        str | None, doc("benchmark whose rows are asked and whose grader gives the reward", NAME)
    ] = None
    grader: Annotated[
        str | None, doc("grader for rows of your own, by name; settings: ++eval_config.KEY", NAME)
    ] = None
    folder: Annotated[
        str | None,
        doc("write the server as a folder of NeMo Gym, FOLDER/resources_servers/NAME, instead of serving"),
    ] = None
    split: Annotated[str | None, doc("rows to write with --folder (default: the benchmark's own)")] = None
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    host: Annotated[str, doc("address to listen on; 0.0.0.0 = all of this machine")] = "127.0.0.1"
    port: Annotated[Port, doc("port to listen on; 0 = a free one")] = 9070
    gym_address: Annotated[bool, doc("listen where NeMo Gym says, as the folder's app.py does")] = False
    max_concurrent: Annotated[AtLeastOne, doc("answers at once for a grader that runs code")] = 64
    workers: Annotated[
        int, Meta(ge=0, description="worker processes for a grader that computes; 0 = one per CPU of this process")
    ] = 0
    open: Open = False
    dry_run: DryRun = False


class GymKeys(RewardKeys, frozen=True, kw_only=True):
    """`++` keys of `ns serve_gym`."""

    tool_modules: Annotated[
        tuple[str, ...], Meta(description="tools of the rows, which the server runs: python, …")
    ] = ()
    tool_overrides: Annotated[
        dict[str, Any], Meta(description="settings of the tools: {Provider: {key: value}}")
    ] = field(default_factory=dict)
