# SPDX-License-Identifier: Apache-2.0
"""A small trainer in this process for small models on a CPU: LoRA on frozen weights, its own batched sampler."""

import os

# Threads of torch that wait for each other should look again for about 50 µs and then sleep. Its OpenMP's own default
# looks ten times as long, which on a machine with other work takes the time of those waited for; sleeping at once takes
# half as long again on a quiet one. Read once, when torch is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
