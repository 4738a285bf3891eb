# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.official`: a table of the comparisons; `--write` stores all figures for the page of headlines."""

from __future__ import annotations

import sys

from tests.official.compared import COMPARISONS, compared
from tests.official.figures import write


def main() -> None:
    if "--write" in sys.argv:
        write()
        return
    print("| benchmark | official scorer | release | attempts | agreement |\n|---|---|---|---|---|")
    for name in COMPARISONS:
        figure = compared(name)
        share = f"{int(figure.agreement * 1000) / 10:.1f} %"
        print(
            f"| {', '.join(figure.benchmarks)} | {figure.scorer} | {figure.release} | {figure.attempts:,} | {share} |"
        )


if __name__ == "__main__":
    main()
