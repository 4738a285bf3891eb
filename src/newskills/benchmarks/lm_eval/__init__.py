# SPDX-License-Identifier: Apache-2.0
"""Tasks and groups of lm-evaluation-harness as benchmarks: `lm-eval:NAME`, `lm-eval:./task.yaml`, `lm-eval:GROUP`."""
