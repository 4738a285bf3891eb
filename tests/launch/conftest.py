# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several modules of this room share."""

from __future__ import annotations

from tests.launch.containers import podman

__all__ = ["podman"]
