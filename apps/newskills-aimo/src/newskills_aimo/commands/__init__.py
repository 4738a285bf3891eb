# SPDX-License-Identifier: Apache-2.0
"""`ns aimo …`: a model for competition mathematics, in three stages."""
