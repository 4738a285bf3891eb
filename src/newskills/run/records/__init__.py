# SPDX-License-Identifier: Apache-2.0
"""Files of a run: rows in, append logs, final files, states."""
