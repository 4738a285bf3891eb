# SPDX-License-Identifier: Apache-2.0
"""The rules of LiveBench's tasks."""
