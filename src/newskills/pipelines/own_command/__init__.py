# SPDX-License-Identifier: Apache-2.0
"""Commands of the user's own as jobs."""
