# SPDX-License-Identifier: Apache-2.0
"""Headlines that are made of the scores of sections: means of means, and means weighted as a leaderboard does."""
