# SPDX-License-Identifier: Apache-2.0
"""From options to trainings: by our own trainers, by those of others, in rounds; and means of checkpoints."""
