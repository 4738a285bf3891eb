# SPDX-License-Identifier: Apache-2.0
"""Models in other file formats, here or as jobs."""
