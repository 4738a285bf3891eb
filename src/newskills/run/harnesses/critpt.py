# SPDX-License-Identifier: Apache-2.0
"""Functions of CritPt for the service of its makers, which alone knows the answers.

`POST` of all problems at once with the header `x-api-key`; it tells the share of right ones
(https://artificialanalysis.ai/documentation, CritPt).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, HttpError
from newskills.base.http.client import HttpClient
from newskills.base.http.proxy import proxy_for
from newskills.base.records import Number, Row
from newskills.base.stats import wilson_interval

SERVICE_URL = "https://artificialanalysis.ai/api/v2/critpt/evaluate"
KEY_VARIABLE = "ARTIFICIAL_ANALYSIS_API_KEY"
PROBLEM_COUNT = 70


class CritPtService(Struct, frozen=True, kw_only=True):
    """Where and as whom; `timeout` in seconds."""

    url: str = SERVICE_URL
    key: str = ""
    timeout: float = 600.0


def service_batch(records: Iterable[Row], model: str, config: Row) -> Row:
    """Return what the service takes. A problem without a function is sent with an empty one: it counts as wrong there.

    Raises DataError: a record without its id, one twice, an answer that was lost, or problems missing.
    """
    submissions: dict[str, Row] = {}
    for record in records:
        identity = record.get("problem_id")
        if not isinstance(identity, str) or identity in submissions:
            raise DataError(f"The problem_id {identity!r} is missing or appears twice: give one file of one seed.")
        if "generated_code" not in record or record.get("error"):
            raise DataError(
                f"{identity} has no graded answer ({record.get('error') or 'the field generated_code is missing'}).",
                hint="Let the run finish first: a lost answer must not be sent as a wrong one.",
            )
        submissions[identity] = {
            "problem_id": identity,
            "generated_code": f"```python\n{record['generated_code'].strip()}\n```",
            "model": model,
            "generation_config": config,
        }
    if len(submissions) != PROBLEM_COUNT:
        raise DataError(
            f"There are {len(submissions)} problems; the service accepts only all {PROBLEM_COUNT} at once."
        )
    return {"submissions": list(submissions.values()), "batch_metadata": {}}


async def submit_batch(body: Row, service: CritPtService, environ: dict[str, str]) -> Row:
    """Send `body` to the service; return what it answered. Raises ConfigError without a key, HttpError for a refusal or
    no answer."""
    key = service.key or environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise ConfigError(f"The CritPt service needs a key, and {KEY_VARIABLE} is not set.")
    parts = urlsplit(service.url)
    base = f"{parts.scheme}://{parts.netloc}"
    client = HttpClient(base, limit=1, headers=(("x-api-key", key),), proxy=proxy_for(base, environ))
    try:
        response = await client.post(parts.path, msgspec.json.encode(body), service.timeout)
    finally:
        await client.close()
    if response.status != 200:
        text = response.body[:300].decode(errors="replace")
        raise HttpError(
            f"The CritPt service refused the request ({response.status}): {text}", status=response.status
        )
    try:
        answer: Any = msgspec.json.decode(response.body)
    except msgspec.DecodeError as error:
        raise HttpError(f"The CritPt service did not answer with JSON: {error}.") from error
    if not isinstance(answer, dict) or not isinstance(answer.get("accuracy"), int | float):
        raise HttpError("The CritPt service sent no accuracy.")
    return answer


def service_accuracy(answer: Row) -> Number:
    """Return the accuracy of all problems, in percent; those lost by its own judge or time count as unscored."""
    lost = sum(int(answer.get(name) or 0) for name in ("judge_error_count", "server_timeout_count"))
    share = float(answer["accuracy"])
    if share > 1:
        share = share / 100
    low, high = wilson_interval(share, PROBLEM_COUNT)
    return Number(value=100 * share, low=100 * low, high=100 * high, n=PROBLEM_COUNT, unscored=lost)
