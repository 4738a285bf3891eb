# SPDX-License-Identifier: Apache-2.0
"""Files to a repository of the Hugging Face hub, with its own client."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from newskills.base.errors import AuthError, ConfigError, DataError, HttpError, NewskillsError, RequestTimeoutError

RepoKind = Literal["dataset", "model"]
TIMEOUT_VARIABLE = "NEWSKILLS_HUB_TIMEOUT"
TIMEOUT_SECONDS = 300.0
"""A hub that sends nothing for so long is given up, unless the variable `TIMEOUT_VARIABLE` says otherwise."""
_TARGET = re.compile(
    r"hf://(?:(?P<kind>datasets|models)/)?(?P<repo>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})(?:@(?P<revision>[\w./-]+))?"
)


class HubTarget(NamedTuple):
    """`revision`: a branch, empty for the main one."""

    kind: RepoKind
    repo: str
    revision: str = ""

    @property
    def address(self) -> str:
        """The page of the repository."""
        host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        prefix = "datasets/" if self.kind == "dataset" else ""
        return f"{host}/{prefix}{self.repo}"


class PushedFile(NamedTuple):
    """`path` in the repository; `content`: the file here, or its bytes."""

    path: str
    content: Path | bytes

    @property
    def size(self) -> int:
        if isinstance(self.content, Path):
            return self.content.stat().st_size
        return len(self.content)


def parse_target(text: str, option: str = "--to") -> HubTarget:
    """Parse `hf://datasets/OWNER/NAME` or `hf://OWNER/NAME` (a model), with `@branch` behind it, the value of `option`.
    Raises ConfigError."""
    match = _TARGET.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{option}: '{text}' is not a place on the hub.",
            hint="Write hf://datasets/OWNER/NAME for samples, hf://OWNER/NAME for a model and its scores.",
        )
    return HubTarget("dataset" if match["kind"] == "datasets" else "model", match["repo"], match["revision"] or "")


def import_hub() -> Any:
    """Return the package. Raises ConfigError where it is missing."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise ConfigError(
            "Sending to the hub needs huggingface_hub, which is not installed.",
            hint="Run: pip install 'newskills[hf]'.",
        ) from error
    return huggingface_hub


def push_files(target: HubTarget, files: Sequence[PushedFile], *, is_public: bool, message: str) -> str:
    """Send the files as one commit and return its address; the repository is created where it does not exist, private
    unless `is_public`.

    Raises ConfigError (package or token is missing), DataError (the repository is public and `is_public` is not said),
    AuthError, HttpError.
    """
    hub = import_hub()
    hub.get_session().timeout = _timeout_seconds()
    api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
    try:
        _ensure_repository(api, hub, target, is_public)
        operations = [
            hub.CommitOperationAdd(
                path_in_repo=file.path,
                path_or_fileobj=str(file.content) if isinstance(file.content, Path) else file.content,
            )
            for file in files
        ]
        if target.revision:
            api.create_branch(target.repo, branch=target.revision, repo_type=target.kind, exist_ok=True)
        commit = api.create_commit(
            repo_id=target.repo,
            repo_type=target.kind,
            operations=operations,
            commit_message=message,
            revision=target.revision or None,
        )
    except NewskillsError:
        raise
    except Exception as error:
        raise _hub_error(error, target) from error
    return str(commit.commit_url)


def _timeout_seconds() -> float:
    try:
        return float(os.environ.get(TIMEOUT_VARIABLE, ""))
    except ValueError:
        return TIMEOUT_SECONDS


def _ensure_repository(api: Any, hub: Any, target: HubTarget, is_public: bool) -> None:
    """Create the repository, unless it exists. Raises DataError where it is public and `is_public` is false."""
    try:
        info = api.repo_info(target.repo, repo_type=target.kind)
    except hub.errors.RepositoryNotFoundError:
        api.create_repo(target.repo, repo_type=target.kind, private=not is_public)
        info = api.repo_info(target.repo, repo_type=target.kind)
    if not info.private and not is_public:
        raise DataError(
            f"{target.address} is public: everybody would see these files.", hint="If that is meant: --public"
        )


def _hub_error(error: Exception, target: HubTarget) -> NewskillsError:
    """Return the error of the hub's client in one sentence."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    text = " ".join(str(error).split())[:300].rstrip(".")
    if status == 401 or type(error).__name__ == "LocalTokenNotFoundError":
        return AuthError(
            f"The hub does not know who you are: {text}.",
            hint="Set HF_TOKEN to a token that may write.",
            status=401,
        )
    if status == 403:
        return AuthError(
            f"The hub refuses to write to {target.repo}: {text}.",
            hint="Does HF_TOKEN belong to that owner, and may it write?",
            status=403,
        )
    if "timeout" in type(error).__name__.lower():
        return RequestTimeoutError(
            f"The hub sent nothing for {_timeout_seconds():g} seconds. The same command tries again."
        )
    if isinstance(status, int):
        return HttpError(f"The hub answers with {status}: {text}.", status=status)
    if isinstance(error, OSError | RuntimeError | ValueError) or type(error).__module__.startswith("http"):
        return HttpError(f"Sending to {target.address} failed: {text or type(error).__name__}.")
    raise error
