# SPDX-License-Identifier: Apache-2.0
"""Ways to ask that one kind of task needs."""
