# SPDX-License-Identifier: Apache-2.0
"""The trainer's side of the reward server: a `Reward` for our own loops, reward functions for TRL and verl."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.aio import backoff_seconds
from newskills.base.errors import (
    AuthError,
    ConfigError,
    DataError,
    GraderError,
    HttpError,
    NewskillsError,
    TransportError,
)
from newskills.base.http.client import HttpClient
from newskills.base.http.connection import HttpResponse, find_header
from newskills.base.http.proxy import proxy_for
from newskills.base.records import Row
from newskills.run.grade import LoopThread, cancel_others
from newskills.run.rewarding.reward import answered_record
from newskills.run.rewarding.wire import TOKENS_FIELD
from newskills.train.loops.samples import Judged

TOKEN_VARIABLE = "NEWSKILLS_REWARDS_TOKEN"  # noqa: S105 - the name of a variable
REWARDS_PATH = "/v1/rewards"
RETRIED_STATUSES = (429, 502, 503, 504)


class ClientOptions(Struct, frozen=True, kw_only=True):
    """batch: samples of a request; connections: requests at once; timeout: seconds for one; patience: seconds for
    which a server that is down or full is asked again."""

    batch: int = 64
    connections: int = 8
    timeout: float = 600.0
    patience: float = 300.0


class _RewardResponse(Struct):
    items: list[Judged]


class RewardClient:
    """Rewards over HTTP, from any thread. A context manager; the token is read from NEWSKILLS_REWARDS_TOKEN."""

    def __init__(self, url: str, options: ClientOptions = ClientOptions()) -> None:  # noqa: B008 - frozen
        """Set up the client of the server at `url`. Raises ConfigError for what is no address."""
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
        headers = (("Authorization", f"Bearer {token}"),) if token else ()
        self.url = url.rstrip("/")
        self._options = options
        self._http = HttpClient(
            self.url, limit=options.connections, headers=headers, proxy=proxy_for(url, os.environ)
        )
        self._loop = LoopThread()
        self._stack = ExitStack()

    def rewards(self, items: Sequence[Row]) -> list[Judged]:
        """Judge items in order; each item is a record with `generation` and what the grader needs of its row.

        Raises DataError (items that the server refuses), AuthError (token), GraderError (no server to be had).
        """
        return self._loop.run(self._reward_all(items))

    def __call__(self, samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
        """Return the rewards of samples of a training loop: (problem's row, text, finish_reason) each. Raises as
        `rewards`."""
        return self.rewards([answered_record(*sample) for sample in samples])

    def __enter__(self) -> RewardClient:
        with ExitStack() as stack:
            stack.enter_context(self._loop)
            stack.callback(lambda: self._loop.run(self._http.close()))
            stack.callback(lambda: self._loop.run(cancel_others()))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    async def _reward_all(self, items: Sequence[Row]) -> list[Judged]:
        size = self._options.batch
        parts = [items[at : at + size] for at in range(0, len(items), size)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_or_error(self._part(part))) for part in parts]
        judgements: list[Judged] = []
        for task in tasks:
            answer = task.result()
            if isinstance(answer, NewskillsError):
                raise answer
            judgements += answer
        return judgements

    async def _part(self, items: Sequence[Row]) -> list[Judged]:
        body = msgspec.json.encode({"items": items}, enc_hook=_plain_value)
        loop = asyncio.get_running_loop()
        until, tries = loop.time() + self._options.patience, 0
        while True:
            tries += 1
            try:
                response = await self._http.post(REWARDS_PATH, body, self._options.timeout)
            except TransportError as error:
                why, wait = error.message, 0.0
            except HttpError as error:
                raise self._lost(error.message) from error
            else:
                if response.status not in RETRIED_STATUSES:
                    return self._read(response, len(items))
                why, wait = _error_message(response), _retry_after_seconds(response)
            wait = max(wait, backoff_seconds(tries, cap=15.0))
            if loop.time() + wait > until:
                raise self._lost(f"Requests were repeated for {self._options.patience:g} s. {why}")
            await asyncio.sleep(wait)

    def _read(self, response: HttpResponse, count: int) -> list[Judged]:
        if response.status in (401, 403):
            raise AuthError(
                f"The reward server at {self.url} refuses this client: {_error_message(response)}",
                hint=f"Set {TOKEN_VARIABLE} to its token.",
            )
        if response.status != 200:
            raise DataError(f"The reward server at {self.url} refuses the samples: {_error_message(response)}")
        try:
            answer = msgspec.json.decode(response.body, type=_RewardResponse)
        except msgspec.DecodeError as error:
            raise self._lost(f"Its answer is not that of a reward server ({error}).") from error
        if len(answer.items) != count:
            raise self._lost(f"It returned {len(answer.items)} rewards for {count} samples.")
        return answer.items

    def _lost(self, why: str) -> GraderError:
        return GraderError(f"No rewards from {self.url}. {why}", hint="Is ns serve_rewards running there?")


async def _or_error(work: Awaitable[list[Judged]]) -> list[Judged] | NewskillsError:
    """Return what `work` returns, or its error: that of one request must not hide behind a group of exceptions."""
    try:
        return await work
    except NewskillsError as error:
        return error


def _retry_after_seconds(response: HttpResponse) -> float:
    """Return the seconds of Retry-After; a date, which a proxy may give there, is not waited for."""
    value = find_header(response.headers, "retry-after") or ""
    if value.isdecimal():
        return float(value)
    return 0.0


def _error_message(response: HttpResponse) -> str:
    try:
        return str(msgspec.json.decode(response.body, type=dict[str, Any])["error"])
    except (msgspec.DecodeError, KeyError):
        return f"status {response.status}"


def _plain_value(value: object) -> object:
    """Convert arrays and numbers of numpy, as columns of data sets have them; other objects become None."""
    listed = getattr(value, "tolist", None)
    if callable(listed):
        return listed()
    return None


def trl_reward(client: RewardClient, name: str = "newskills") -> Callable[..., list[float | None]]:
    """Return a reward function of TRL (`GRPOTrainer(reward_funcs=…)`): its columns are the rows, None is what was lost.

    Raises ConfigError for completions that are neither texts nor conversations.
    """

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Sequence[Any] = (), **columns: Any
    ) -> list[float | None]:
        lists = {
            key: column
            for key, column in columns.items()
            if isinstance(column, list) and len(column) == len(completions)
        }
        items = [
            {
                **{key: column[place] for key, column in lists.items()},
                "generation": text_of(completion),
                **({TOKENS_FIELD: len(completion_ids[place])} if completion_ids else {}),
            }
            for place, completion in enumerate(completions)
        ]
        return [item.reward for item in client.rewards(items)]

    reward.__name__ = name
    return reward


def text_of(completion: object) -> str:
    """Return the text of a completion of TRL, which is a text, or the messages that follow the prompt. Raises
    ConfigError."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence):
        messages = [message for message in completion if isinstance(message, Mapping)]
        contents = [message.get("content") for message in messages if message.get("role") == "assistant"]
        if contents and isinstance(contents[-1], str):
            return contents[-1]
    raise ConfigError("A completion must be a text, or messages that end with one of the assistant.")


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    url: str,
    unscored: float | None = None,
    **_: Any,
) -> dict[str, float]:
    """Serve as a reward function of verl: return `score`, `acc` (1.0 where the answer is right), `unscored` (1.0 where
    it is lost).

        reward.custom_reward_function.path=pkg://newskills.rewards
        reward.custom_reward_function.name=compute_score
        +reward.custom_reward_function.reward_kwargs.url=http://HOST:9060

    `extra_info` holds what the grader needs of the row beside the expected answer. verl cannot leave a sample out:
    what could not be graded ends the training with GraderError, unless `unscored` says what it is worth.
    """
    row = {**(extra_info or {}), "data_source": data_source, "expected_answer": ground_truth}
    (item,) = _shared_client(url).rewards([{**row, "generation": solution_str}])
    if item.reward is None and unscored is None:
        raise GraderError(
            f"A sample could not be graded, and verl cannot skip it. {item.why}",
            hint="Set reward_kwargs.unscored to the reward of such samples.",
        )
    score = unscored if item.reward is None else item.reward
    assert score is not None
    return {"score": score, "acc": float(item.correct), "unscored": float(item.reward is None)}


_CLIENTS: dict[str, RewardClient] = {}
_MAKING_LOCK = threading.Lock()


def _shared_client(url: str) -> RewardClient:
    """Return the client for all threads of this process, which lasts as long as it does."""
    with _MAKING_LOCK:
        if url not in _CLIENTS:
            _CLIENTS[url] = RewardClient(url).__enter__()
            atexit.register(_CLIENTS[url].__exit__, None, None, None)
        return _CLIENTS[url]
