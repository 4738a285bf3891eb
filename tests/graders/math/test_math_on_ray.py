# SPDX-License-Identifier: Apache-2.0
"""The library in workers of Ray: in tasks, and in the threads of an actor, where a costly answer ends in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="no Ray here: pip install 'ray[default]'")

PROGRAM = r"""
import json, os, ray
SUMS = ",".join(rf"\sum_{{n=1}}^{{\infty}} \frac{{1}}{{n^2+{i}}}" for i in range(50))

def judge(number):
    from newskills_math import compare, parse, verify
    costly = compare(SUMS, SUMS.replace("n^2", f"{number + 2}n^2"), seconds=0.1)
    return costly.reason, verify(parse("$\\frac12$"), parse("So it is \\boxed{0.5}."))

class Judge:
    def judge(self, number):
        return judge(number)

variables = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=variables)
tasks = [ray.remote(judge).remote(number) for number in range(4)]
actor = ray.remote(Judge).options(max_concurrency=8).remote()
calls = [actor.judge.remote(number) for number in range(8)]
print(json.dumps([ray.get(tasks), ray.get(calls)]))
ray.shutdown()
"""


@pytest.mark.slow
def test_costly_answers_end_in_tasks_and_in_threads_of_an_actor() -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environ, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    tasks, calls = json.loads(done.stdout.splitlines()[-1])
    assert tasks == [["no time left in step value", True]] * 4
    assert calls == [["no time left in step value", True]] * 8
