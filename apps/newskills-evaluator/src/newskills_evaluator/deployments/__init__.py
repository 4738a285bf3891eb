# SPDX-License-Identifier: Apache-2.0
"""A compiled configuration of `ns evaluate` as jobs: for each task a server and the client that evaluates it."""

from newskills_evaluator.deployments.plan import DeploymentPlan, plan_invocation

__all__ = ["DeploymentPlan", "plan_invocation"]
