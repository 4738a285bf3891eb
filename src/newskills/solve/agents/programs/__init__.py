# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects that work inside the task's container and ask the run's endpoint."""
