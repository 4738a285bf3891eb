# SPDX-License-Identifier: Apache-2.0
"""Killable worker processes: `workers` is what others use, `loop` the thread that serves it, `process` a worker."""
