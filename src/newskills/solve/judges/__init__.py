# SPDX-License-Identifier: Apache-2.0
"""Questions to judges about answers that exist."""
