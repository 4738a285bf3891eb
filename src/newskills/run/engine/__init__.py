# SPDX-License-Identifier: Apache-2.0
"""The loop over all samples of a run, and what it holds: endpoints, graders, tools, sandboxes."""
