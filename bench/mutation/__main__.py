# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.mutation [AREA …] [--sample N] [--seed N] [--only PATH]`."""

import sys

from bench.mutation.sample import main

if __name__ == "__main__":
    sys.exit(main())
