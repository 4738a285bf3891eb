# SPDX-License-Identifier: Apache-2.0
"""How other systems use newskills and how newskills uses what they wrote: profiles, harness entries, importers."""
