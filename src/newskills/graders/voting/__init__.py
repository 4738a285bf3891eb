# SPDX-License-Identifier: Apache-2.0
"""Which answers to one problem vote together."""
