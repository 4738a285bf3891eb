# SPDX-License-Identifier: Apache-2.0
"""What `python -m newskills.interop.deployments.balancer` is in the plans of earlier versions."""

from __future__ import annotations

import sys

from newskills_evaluator.deployments.balancer import main

if __name__ == "__main__":
    main(sys.argv[1:])
