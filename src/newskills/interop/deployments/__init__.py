# SPDX-License-Identifier: Apache-2.0
"""A compiled configuration of `ns evaluate` as jobs: for each task a server and the client that evaluates it."""

from newskills.interop.deployments.plan import Planned, plan_invocation

__all__ = ["Planned", "plan_invocation"]
