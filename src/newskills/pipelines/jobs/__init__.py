# SPDX-License-Identifier: Apache-2.0
"""Jobs that were submitted: what they do, their logs, and what becomes of them."""
