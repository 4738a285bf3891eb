# SPDX-License-Identifier: Apache-2.0
"""Pages for a browser on this machine."""
