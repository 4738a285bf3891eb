# SPDX-License-Identifier: Apache-2.0
"""Published wordings of prompts: where they are downloaded from, and how their files become prompts.

No published text is part of newskills. `sources.jsonl` says which files of which commit hold one; preparing a benchmark
lays these files beside its rows, as they are, and `reading.official_source` reads them from there.
"""
