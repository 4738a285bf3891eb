# SPDX-License-Identifier: Apache-2.0
"""Reports that stand alone: one HTML file without links to anything, and the same as Markdown."""
