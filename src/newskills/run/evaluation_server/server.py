# SPDX-License-Identifier: Apache-2.0
"""The evaluation server over HTTP. Everything is JSON, errors are `{"error": sentence}`.

GET /health        {"status": "ok"}; needs no token
POST /evaluate     a trainer's request (see `wire`); the answer comes when all benchmarks have ended: 200 with
                   `raw_metrics` of those that passed and `errors` of the others, 500 where none passed
POST /jobs         the same request; 202 at once, with the `status_url`
GET /jobs          outlines of the jobs, the latest first
GET /jobs/<id>     one of them, with its parts and how far they are
DELETE /jobs/<id>  stops a job; forgets one that has ended
GET /status/<id>   queued, running, completed with `raw_metrics`, else with `error`
"""

from __future__ import annotations

import uuid

from newskills.base.errors import ConfigError, NewskillsError, StorageError
from newskills.base.http.access import refusal_response
from newskills.base.http.messages import (
    HttpRequest,
    Response,
    error_response,
    json_response,
    not_found,
    wrong_method,
)
from newskills.base.records import Row
from newskills.run.evaluation_server.job import OPEN_STATES, EvaluationJob
from newskills.run.evaluation_server.jobs import EvaluationJobs
from newskills.run.evaluation_server.wire import EvaluationRequest, read_request

JOBS, STATUS = "/jobs", "/status"
NOTHING_WARNING = "The request names no benchmarks; nothing was evaluated."


class EvaluationServer:
    """Answers requests with the jobs it is given, whose life belongs to the caller."""

    def __init__(self, jobs: EvaluationJobs, *, token: str = "") -> None:
        self._jobs, self._token = jobs, token

    async def answer(self, request: HttpRequest) -> Response:
        if request.path == "/health":
            return wrong_method(request, "GET") or json_response({"status": "ok"})
        if (stranger := refusal_response(request, self._token, "evaluation server")) is not None:
            return stranger
        if request.path == "/evaluate":
            return wrong_method(request, "POST") or await self._begin(request, wait=True)
        if request.path == JOBS and request.method == "POST":
            return await self._begin(request, wait=False)
        if request.path == JOBS:
            listed = {"jobs": [job.outline() for job in self._jobs.list_jobs()]}
            return wrong_method(request, "GET", "POST") or json_response(listed)
        folder, _, job_id = request.path[1:].partition("/")
        job = self._jobs.get(job_id) if f"/{folder}" in (JOBS, STATUS) else None
        if job is None:
            return not_found(request)
        if folder == STATUS[1:]:
            return wrong_method(request, "GET") or self._status(job)
        return wrong_method(request, "GET", "DELETE") or await self._one(job, request.method)

    async def _begin(self, request: HttpRequest, *, wait: bool) -> Response:
        try:
            wanted = read_request(request.body)
        except ConfigError as error:
            return error_response(400, str(error))
        if self._jobs.closing:
            return error_response(503, "The server is stopping; a new one resumes the unfinished work.")
        if not wanted.benchmarks:
            return json_response(_empty_answer())
        return await self._evaluate(wanted, wait=wait)

    async def _evaluate(self, wanted: EvaluationRequest, *, wait: bool) -> Response:
        try:
            job = await self._jobs.obtain(wanted)
        except StorageError as error:
            return error_response(500, str(error))
        except NewskillsError as error:
            return error_response(400, str(error))
        if not wait:
            if job.state == "running":
                status = "running"
            elif job.state in OPEN_STATES:
                status = "queued"
            else:
                status = job.state
            return json_response(
                {"job_id": job.job_id, "status": status, "status_url": f"{STATUS}/{job.job_id}"}, 202
            )
        await self._jobs.await_end(job)
        code, body = job.answer()
        self._jobs.note_client(job, delivered=True)
        return json_response(body, code)

    def _status(self, job: EvaluationJob) -> Response:
        self._jobs.note_client(job, delivered=job.state not in OPEN_STATES)
        return json_response(job.status())

    async def _one(self, job: EvaluationJob, method: str) -> Response:
        if method == "DELETE":
            await self._jobs.cancel(job)
            return json_response(job.outline())
        return json_response(self._details(job))

    def _details(self, job: EvaluationJob) -> Row:
        progress = self._jobs.progress(job)
        runs = [
            {
                **part.outline(),
                "status": part.state,
                **progress.get(part.name, {}),
                "log": part.log_tail().rpartition("\n")[2],
                "metrics": part.metrics,
            }
            for part in job.parts
        ]
        return {**job.outline(), "request": job.request, "runs": runs, "errors": job.errors}


def _empty_answer() -> Row:
    places = dict.fromkeys(("command", "output_dir", "log_path"))
    return {"job_id": uuid.uuid4().hex, **places, "warning": NOTHING_WARNING, "raw_metrics": {}}
