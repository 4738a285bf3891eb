# SPDX-License-Identifier: Apache-2.0
"""What an endpoint is asked with: tries, pauses, and what its replies tell together."""
