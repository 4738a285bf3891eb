# SPDX-License-Identifier: Apache-2.0
"""Where work goes: clusters, the two names of each file, code and data that travel."""
