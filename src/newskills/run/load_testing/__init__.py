# SPDX-License-Identifier: Apache-2.0
"""Load tests of endpoints: schedules, measurements, their records and figures."""
