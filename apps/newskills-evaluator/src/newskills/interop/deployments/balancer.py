# SPDX-License-Identifier: Apache-2.0
"""What job scripts start, of any version, as `python -m newskills.interop.deployments.balancer`."""

from __future__ import annotations

import sys

from newskills_evaluator.deployments.balancer import main

if __name__ == "__main__":
    main(sys.argv[1:])
