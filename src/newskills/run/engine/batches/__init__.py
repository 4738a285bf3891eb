# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for others and are asked in batches: an endpoint that looks like any other to solvers."""
