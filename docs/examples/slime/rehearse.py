# SPDX-License-Identifier: Apache-2.0
"""A rehearsal of delegated evaluation without a trainer: run it where the trainer will run. Needs Python, nothing else.

    python3 rehearse.py http://skills_server:9050/evaluate [aime25 ...]

It does both parts of a trainer: it answers as its router (every reply is the same), and it posts the request that
slime posts. What it prints is what slime would log. The replies must find their way back: the server asks at
http://<this machine>:<port>, where <this machine> is the address that leads from here to the server.
"""

import json
import os
import socket
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

REPLY = "I guess that the answer is \\boxed{70}."


class Router(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": REPLY}}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
        data = json.dumps({**body, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def own_address(url):
    """Return the address of this machine on the way to `url`."""
    parts = urlsplit(url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname, parts.port or 80))
        return probe.getsockname()[0]


def await_server(url):
    """Wait up to a minute for a server that was just started; exit if nobody answers."""
    health = f"{url.rpartition('/')[0]}/health"
    for _ in range(60):
        try:
            urllib.request.urlopen(health, timeout=5).close()  # noqa: S310 - typed by its user
        except OSError:
            time.sleep(1)
        else:
            return
    sys.exit(f"Nobody answers at {health}.")


def logged(metrics, prefix="eval"):
    """Numbers, under the path of their keys."""
    for key, value in metrics.items():
        if isinstance(value, dict):
            yield from logged(value, f"{prefix}/{key}")
        elif isinstance(value, (int, float)):
            yield f"{prefix}/{key}", value


def main(url, names):
    await_server(url)
    router = ThreadingHTTPServer(("0.0.0.0", 0), Router)  # noqa: S104 - the server is another machine
    threading.Thread(target=router.serve_forever, daemon=True).start()
    sampled = {"n_samples_per_eval_prompt": 2, "temperature": 1.0, "top_p": 1.0, "top_k": -1}
    request = {
        "rollout_id": os.getpid(),
        "router_url": f"http://{own_address(url)}:{router.server_port}",
        "benchmarks": [{"name": name, **sampled} for name in names],
    }
    headers = {"Authorization": f"Bearer {token}"} if (token := os.environ.get("NEWSKILLS_EVALS_TOKEN")) else {}
    post = urllib.request.Request(url, json.dumps(request).encode(), headers)  # noqa: S310 - typed by its user
    with urllib.request.urlopen(post, timeout=3600) as reply:  # noqa: S310
        answer = json.load(reply)
    for name, value in logged(answer["raw_metrics"]):
        print(f"{name} = {value:g}")
    for name, sentence in answer.get("errors", {}).items():
        print(f"{name} failed: {sentence}")
    return 1 if answer.get("errors") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] or ["aime25"]))
