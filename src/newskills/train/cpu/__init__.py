# SPDX-License-Identifier: Apache-2.0
"""A small trainer in this process for small models on a CPU: LoRA on frozen weights, its own batched sampler."""

import os

# torch's threads spin while they wait for each other, which on a machine with other work takes ten times as long.
# Its OpenMP reads this once, when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
