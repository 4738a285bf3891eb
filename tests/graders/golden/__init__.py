# SPDX-License-Identifier: Apache-2.0
"""What graders say of small inputs, one case a line, so that no rule changes without being seen."""
