# SPDX-License-Identifier: Apache-2.0
"""Where results can be exported to: one file each."""
