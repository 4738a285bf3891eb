# SPDX-License-Identifier: Apache-2.0
"""What the commands do. Apart from their options, so that help and completion load no trainer."""
