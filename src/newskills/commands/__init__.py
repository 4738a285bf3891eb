# SPDX-License-Identifier: Apache-2.0
"""One file per command; each exports COMMAND. `cli.py` holds the table."""
