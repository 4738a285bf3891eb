# SPDX-License-Identifier: Apache-2.0
"""What goes to the Hugging Face hub: files of a data set or a model, cards, scores; and secrets, which must not."""
