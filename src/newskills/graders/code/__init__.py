# SPDX-License-Identifier: Apache-2.0
"""Answers that are programs: run in the sandbox against tests that they cannot see.

Two processes work inside the sandbox. The judge holds the tests and the only way to report; the candidate, a fresh
interpreter, holds the model's code and answers calls over a pipe. Values cross the pipe as plain data, so that
nothing the code does to its own interpreter (patched functions, objects equal to everything, an early exit, a printed
marker) can turn into a verdict.
"""
