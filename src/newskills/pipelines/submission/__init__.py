# SPDX-License-Identifier: Apache-2.0
"""Plans of jobs: made, shown, submitted, followed."""
