# SPDX-License-Identifier: Apache-2.0
"""Questions about videos of up to an hour, asked with frames of them (Fu et al. 2024, arXiv:2405.21075).

Configuration, split and fields: videomme of lmms-eval (75571cf) and VideoMME of VLMEvalKit (e8e78f0), which also says
which frames are taken.
"""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

FRAMES = 32
_LETTER = re.compile(r"\A\s*[A-D]\s*[.:)]\s*")


def row(raw: Row, index: int) -> Row:
    options = [_LETTER.sub("", option) for option in raw["options"]]
    if raw["answer"] not in tuple("ABCD"[: len(options)]):
        raise ValueError(f"the answer is {raw['answer']!r}, and there are {len(options)} options")
    return {
        "id": f"video-mme-{raw['question_id']}",
        "question": raw["question"],
        **choices(f"The pictures are frames of a video, in order.\n\n{raw['question']}", options),
        "expected_answer": raw["answer"],
        "video": raw["videoID"],
        "image_path": [f"frames/{raw['videoID']}/{number:02}.jpg" for number in range(1, FRAMES + 1)],
        "domain": raw["domain"],
        "subset_for_metrics": [raw["duration"], raw["domain"]],
    }


BENCHMARK = Benchmark(
    name="video-mme",
    category="vlm",
    title="Video-MME: questions about videos, by 32 frames, without subtitles",
    aliases=("videomme",),
    sources=(Source(hf="lmms-lab/Video-MME", config="videomme"),),
    row=row,
    prompt="vlm/mmmu-pro",
    grader="multichoice",
    metric="multichoice",
    items={"test": 2700},
    licence="academic use only",
    homepage="https://huggingface.co/datasets/lmms-lab/Video-MME",
    citation="arXiv:2405.21075",
    chance=0.25,
    requires="newskills[media]",
    unverified=True,
    traps=(
        "Headline: accuracy over all questions; short, medium and long videos, and domains, are subsets.",
        f"The frames come apart: cut {FRAMES} frames of each video, number i at i/{FRAMES + 1} of its length, into "
        "<data_dir>/video-mme/frames/VIDEO_ID/01.jpg and so on. Scores with another number of frames do not compare.",
        "Without subtitles; the paper reports both.",
    ),
)
