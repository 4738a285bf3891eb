# SPDX-License-Identifier: Apache-2.0
"""Run by a peer's interpreter: median milliseconds of a trivial cell in an IPython kernel over its own protocol."""

import statistics
import time

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3")
try:
    taken = []
    for _ in range(300):
        began = time.perf_counter()
        client.execute_interactive("x = 1 + 1", timeout=30, output_hook=lambda message: None)
        taken.append(1000 * (time.perf_counter() - began))
    print(statistics.median(taken))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
