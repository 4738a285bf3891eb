# SPDX-License-Identifier: Apache-2.0
"""What a run is asked to do: settings, units of work, `run.json`."""
