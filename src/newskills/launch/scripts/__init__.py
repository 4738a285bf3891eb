# SPDX-License-Identifier: Apache-2.0
"""Typed scripts: what servers, sandboxes and clients are in a plan."""
