# SPDX-License-Identifier: Apache-2.0
"""One file for each family of filters. A filter looks at one row, and keeps, changes or drops it."""
