# SPDX-License-Identifier: Apache-2.0
"""A model endpoint that knows one answer: it stands in for a real server in rehearsals.

`python -m newskills.pipelines.rehearsal.stub_model --port N`
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from newskills.base.http.messages import HttpRequest, Response, json_response, not_found
from newskills.base.http.server import serve

TEXT = "This is a rehearsal. The answer is \\boxed{42}. Judgement: Yes"
USAGE = {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16}


async def answer_request(request: HttpRequest) -> Response:
    """Answer a request of the OpenAI protocol, as far as rehearsals need it."""
    if request.path.endswith("/chat/completions"):
        choice = {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
        return json_response({"object": "chat.completion", "choices": [choice], "usage": USAGE})
    if request.path.endswith("/completions"):
        choice = {"index": 0, "text": TEXT, "finish_reason": "stop"}
        return json_response({"object": "text_completion", "choices": [choice], "usage": USAGE})
    if request.path.endswith("/models"):
        return json_response({"object": "list", "data": [{"id": "rehearsal", "object": "model"}]})
    if request.path == "/health":
        return json_response({})
    return not_found(request)


async def serve_forever(port: int) -> None:
    await serve(answer_request, port=port)
    await asyncio.Event().wait()


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m newskills.pipelines.rehearsal.stub_model", description=__doc__
    )
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve_forever(parser.parse_args(argv).port))


if __name__ == "__main__":
    main(sys.argv[1:])
