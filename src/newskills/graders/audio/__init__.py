# SPDX-License-Identifier: Apache-2.0
"""What was heard against what was said: words, punctuation, names, keywords; and silence."""
