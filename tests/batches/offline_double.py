# SPDX-License-Identifier: Apache-2.0
"""Does with files what vLLM does: `offline_double.py run-batch --input-file IN --output-file OUT --model NAME`.

Results come in the order of the input, as they are done, each in the shape of vLLM's BatchRequestOutput. Each start is
noted in the file STARTS; a row with "wait" is answered once the file GO is there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["run-batch"])
    parser.add_argument("-i", "--input-file", required=True)
    parser.add_argument("-o", "--output-file", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--trust-remote-code", action="store_true")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    options = parser.parse_args()
    here = Path(options.input_file).parent
    with (here / "STARTS").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if options.model == "broken":
        sys.stderr.write("ValueError: No available memory for the cache blocks.\n")
        return 1
    with open(options.output_file, "w") as out, open(options.input_file) as rows:
        for line in rows:
            row = json.loads(line)
            assert (row["method"], row["url"]) == ("POST", "/v1/chat/completions")
            assert row["body"]["model"] == options.model
            text = row["body"]["messages"][-1]["content"]
            while "7 +" in text and (here / "WAIT").exists():
                time.sleep(0.01)
            response: dict[str, object] = {"status_code": 200, "request_id": "vllm-batch-1"}
            error = None
            if "5 +" in text and (here / "REFUSE").exists():
                response |= {"status_code": 400, "body": None}
                error = {
                    "error": {
                        "message": "too long a prompt",
                        "type": "BadRequestError",
                        "param": None,
                        "code": 400,
                    }
                }
            else:
                left, right = re.findall(r"\d+", text)
                answer = {"role": "assistant", "content": str(int(left) + int(right))}
                response["body"] = {
                    "id": "chatcmpl-1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": options.model,
                    "choices": [{"index": 0, "message": answer, "logprobs": None, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 9, "total_tokens": 10, "completion_tokens": 1},
                }
            result = {"id": "vllm-1", "custom_id": row["custom_id"], "response": response, "error": error}
            out.write(json.dumps(result) + "\n")
            out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
