# SPDX-License-Identifier: Apache-2.0
"""Data of benchmarks and training sets, prepared here or by a job."""
