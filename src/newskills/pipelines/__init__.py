# SPDX-License-Identifier: Apache-2.0
"""From options to work: here in this process, or as jobs that are planned, placed, submitted and followed."""
