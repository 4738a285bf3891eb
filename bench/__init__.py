# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: how fast newskills is, as ratios against peers or limits measured in the same run."""
