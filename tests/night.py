# SPDX-License-Identifier: Apache-2.0
"""Whether tests may take long: `pytest.mark.nightly` runs then, and others do more of the same."""

import os

NIGHTLY = "NEWSKILLS_NIGHTLY" in os.environ
