# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several modules of this room share."""

from __future__ import annotations

from tests.environments.images import agent_image
from tests.environments.tasks import agent_tasks

__all__ = ["agent_image", "agent_tasks"]
