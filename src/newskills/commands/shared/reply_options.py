# SPDX-License-Identifier: Apache-2.0
"""Options and `++` keys of commands that train on better and worse replies."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from newskills.commands.shared.training_options import LocalOptions, PromptKeys
from newskills.pipelines.options import doc


class ReplyOptions(LocalOptions, frozen=True, kw_only=True):
    """Options of every training on replies that are better or worse."""

    training_data: str | None = None
    input_files: Annotated[
        list[str], doc("instead: graded output files of several seeds; correct replies are good, wrong ones bad")
    ] = msgspec.field(default_factory=list)
    benchmark: Annotated[str | None, doc("benchmark of --input_files: its prompt (or ++prompt_config)")] = None


class PairOptions(ReplyOptions, frozen=True, kw_only=True):
    """Options of every training on pairs."""

    training_data: Annotated[
        str | None, doc("JSONL file of {prompt, chosen, rejected}: texts used unchanged, or conversations")
    ] = None
    input_files: Annotated[
        list[str],
        doc("instead: graded output files of several seeds; correct replies are paired with wrong ones"),
    ] = msgspec.field(default_factory=list)


class ReplyKeys(PromptKeys, frozen=True, kw_only=True):
    """`++` keys of every training on replies that are better or worse."""

    drop_cut_off: Annotated[
        bool, Meta(description="ignore replies that reached their limit of tokens (--input_files)")
    ] = False


class PairKeys(ReplyKeys, frozen=True, kw_only=True):
    """`++` keys of every training on pairs."""

    pairs_per_problem: Annotated[int, Meta(ge=1, description="most pairs of one problem (--input_files)")] = 2
