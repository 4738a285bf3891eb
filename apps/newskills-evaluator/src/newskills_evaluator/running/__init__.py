# SPDX-License-Identifier: Apache-2.0
"""What the commands do, and what those of the core ask."""
