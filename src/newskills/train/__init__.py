# SPDX-License-Identifier: Apache-2.0
"""Training: data building, trainers behind one set of verbs, rewards that are the graders, checkpoint conversion."""
