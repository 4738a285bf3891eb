# SPDX-License-Identifier: Apache-2.0
"""What a training learns from, as token ids: rows, preferences, problems and their rewards; and what is told of it."""
