# SPDX-License-Identifier: Apache-2.0
"""Ready-made pipelines: short, readable, on the public floors below."""
