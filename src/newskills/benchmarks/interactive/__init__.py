# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that environments of other packages are."""
