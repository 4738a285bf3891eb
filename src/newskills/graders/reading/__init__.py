# SPDX-License-Identifier: Apache-2.0
"""What graders read texts with: the part that answers, letters, overlaps, tables."""
