# SPDX-License-Identifier: Apache-2.0
"""Judges that are trained models in the judge's own process, and how steps of NeMo-Skills name them."""

from __future__ import annotations

from newskills.base.benchmark import Judge

REPLY = "judge/reply"
"""Prompt where none is asked: what is judged is the reply."""
MEASURES = {
    "comet": Judge(kind="comet", prompt=REPLY, grader="comet", model="Unbabel/XCOMET-XXL", server_type="comet"),
    "nvembed": Judge(
        kind="nvembed", prompt=REPLY, grader="nvembed", model="nvidia/NV-Embed-v2", server_type="nvembed"
    ),
}


def measure_of(step: str) -> str | None:
    """Return the kind of judge that a step of NeMo-Skills (`…judges.comet_judge::…`) runs; None: another one."""
    if not step.startswith("nemo_skills."):
        return None
    return next((kind for kind in MEASURES if f".{kind}_judge::" in step), None)
