# SPDX-License-Identifier: Apache-2.0
"""What each page of the viewer shows, as plain values that become JSON."""
