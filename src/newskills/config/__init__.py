# SPDX-License-Identifier: Apache-2.0
"""Layered, strict configuration that explains itself: flags and `++` keys → frozen structs with provenance."""
