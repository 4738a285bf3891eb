# SPDX-License-Identifier: Apache-2.0
"""Checkpoints to the Hugging Face hub while a training goes on, by what `ns push` does."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from newskills.base.errors import AuthError, ConfigError, NewskillsError
from newskills.exchange.hub.upload import HubTarget, import_hub, parse_target, push_files
from newskills.pipelines.results.pushed import PushSource, prepare_push
from newskills.train.loops.folder import Checkpoint, TrainingFolder

OPTION = "--push_to"


def push_target(text: str) -> HubTarget:
    """Return where checkpoints go. Raises ConfigError for another place than a model on the hub, or without the hub's
    client; AuthError without a token."""
    target = parse_target(text, OPTION)
    if target.kind != "model":
        raise ConfigError(
            f"{OPTION}: '{text}' is a data set, and checkpoints are models.", hint="Write hf://OWNER/NAME."
        )
    hub = import_hub()  # before a trainer tells the client to stay offline
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise ConfigError(
            f"HF_HUB_OFFLINE is set, so {OPTION} cannot send anything.", hint="Leave one of them out."
        )
    if hub.get_token() is None:
        raise AuthError(f"{OPTION} needs a token.", hint="Set HF_TOKEN to a token that may write.")
    return target


class PushedFolder(TrainingFolder):
    """A training folder whose checkpoints are sent as commits of one repository, one after the other, while the
    training goes on. Of several that wait only the newest is sent; what fails is remarked, and the training goes on.
    """

    def __init__(
        self,
        path: Path,
        settings: Any,
        *,
        keep: int,
        target: HubTarget,
        public: bool,
        remark: Callable[[str], None],
    ) -> None:
        """Open the folder. Raises as `TrainingFolder`."""
        super().__init__(path, settings, keep=keep)
        self._target, self._public, self._remark = target, public, remark
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="newskills-push")
        self._newest = ""
        self._sending: list[Future[None]] = []

    def _note(self, checkpoint: Checkpoint) -> Checkpoint:
        noted = super()._note(checkpoint)
        state = noted.state_path
        if "://" in state:
            self._remark(f"{state} lies at a service and is not sent.")
        elif state and state != self._newest:
            self._newest = state
            self._sending.append(self._pool.submit(self._send, state))
        return noted

    def _send(self, state: str) -> None:
        if state != self._newest:
            return
        try:
            with tempfile.TemporaryDirectory(prefix="newskills-push-") as scratch:
                prepared = prepare_push(PushSource(self.path / state, None, ()), self._target, Path(scratch))
                if prepared.secrets:
                    self._remark(f"{state} was not sent: {prepared.secrets[0].file} has what looks like a secret.")
                    return
                commit = push_files(self._target, prepared.files, is_public=self._public, message=state)
        except (NewskillsError, OSError) as error:  # OSError: it was removed as one of the oldest
            self._remark(f"{state} was not sent: {error}")
            return
        self._remark(f"{state} is at {commit}")

    def close(self) -> None:
        """Wait for what is sent, and close the files."""
        self._pool.shutdown()
        super().close()
