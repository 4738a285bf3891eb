# SPDX-License-Identifier: Apache-2.0
"""A small OpenAI-compatible server of our own whose good and bad manners are written in a `Script`.

    with FakeServer(Script(answer=Answer(kind="echo"))) as server:
        ...  # talk to server.base_url (http://127.0.0.1:PORT/v1)
        server.script = Script(faults=[Fault(kind="status", status=503, first=3)])
        assert server.max_in_flight <= 8
        assert [r.prompt for r in server.records] == [...]

`FakeServer` runs in a thread of the test; `FakeServerProcess` has the same face and is a process of its own;
`python -m tests.server --script '{"answer": {"kind": "echo"}}'` starts one by hand and prints its address.
"""

from tests.server.host import FakeServer, FakeServerProcess
from tests.server.script import CONTEXT_SHAPES, Answer, Fault, Latency, Record, Script

__all__ = [
    "CONTEXT_SHAPES",
    "Answer",
    "FakeServer",
    "FakeServerProcess",
    "Fault",
    "Latency",
    "Record",
    "Script",
]
