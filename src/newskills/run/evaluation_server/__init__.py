# SPDX-License-Identifier: Apache-2.0
"""Evaluations for trainers, over HTTP: `POST /evaluate` as slime's delegated evaluation speaks it, and a few more.

All runs in this one process, each benchmark by an engine of its own on a thread of its own, and all engines share one
limit of requests in flight. Why not one engine for all benchmarks of a request: an engine stops as a whole when its
sandbox, its judge or its endpoint cannot be used, and one benchmark would take the others with it; judges and tables
would have to wait for the slowest. Why not a process for each: a global limit would need a broker between them, each
would pay for its start, and their ends would have to be looked after.
"""
