# SPDX-License-Identifier: Apache-2.0
"""Units of generation as jobs: which are left, what is checked before, how they are shared out."""
