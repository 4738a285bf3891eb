# SPDX-License-Identifier: Apache-2.0
"""Programs that job scripts start, by addresses that are the same in all versions.

`ns resume` runs plans of other versions, and what a dry run shows is what it always was.
"""

ARTIFACTS = "newskills.interop.artifacts"
"""Forwards to `newskills_evaluator.artifacts`."""
AUTO_EXPORT = "newskills.interop.auto_export"
"""Forwards to `newskills_evaluator.auto_export`."""
BALANCER = "newskills.interop.deployments.balancer"
"""Forwards to `newskills_evaluator.deployments.balancer`."""
