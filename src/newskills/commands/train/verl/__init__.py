# SPDX-License-Identifier: Apache-2.0
"""`ns verl …`: trainings with verl."""
