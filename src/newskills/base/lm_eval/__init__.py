# SPDX-License-Identifier: Apache-2.0
"""Tasks of lm-evaluation-harness (https://github.com/EleutherAI/lm-evaluation-harness), made by its own package."""
