# SPDX-License-Identifier: Apache-2.0
"""The program SWE-agent, run inside the container of a task."""
