# SPDX-License-Identifier: Apache-2.0
"""Times as Slurm writes them: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S (https://slurm.schedmd.com/sbatch.html#OPT_time)."""

from __future__ import annotations

import re

from newskills.base.errors import ConfigError

_TIME = re.compile(r"(?:(?P<days>\d{1,5})-)?(?P<rest>\d{1,7}(?::\d{1,7}){0,2})\Z", re.ASCII)


def seconds_of(text: str) -> int:
    """Return the seconds of a time as Slurm writes it. Raises ConfigError for text that is not a time, or is a time of
    0."""
    total = 0
    if match := _TIME.match(text):
        numbers = [int(part) for part in match["rest"].split(":")]
        if match["days"]:
            hours, minutes, seconds = [*numbers, 0, 0][:3]
            total = ((int(match["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
        elif len(numbers) == 3:
            total = (numbers[0] * 60 + numbers[1]) * 60 + numbers[2]
        else:
            total = sum(number * unit for number, unit in zip(numbers, (60, 1), strict=False))
    if total == 0:
        raise ConfigError(f"'{text}' is not a time limit; write HH:MM:SS or D-HH:MM:SS.")
    return total
