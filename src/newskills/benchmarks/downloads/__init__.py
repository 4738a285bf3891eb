# SPDX-License-Identifier: Apache-2.0
"""From addresses, archives and mirrors to raw rows."""
