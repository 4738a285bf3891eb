# SPDX-License-Identifier: Apache-2.0
"""`ns improve`: rounds of generating, filtering and training, each kept only if a test on held-out problems says so."""
