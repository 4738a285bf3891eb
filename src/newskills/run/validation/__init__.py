# SPDX-License-Identifier: Apache-2.0
"""Whether a benchmark measures what it should, found without a model."""
