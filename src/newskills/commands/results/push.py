# SPDX-License-Identifier: Apache-2.0
"""`ns push DIR --to=hf://…`: samples, scores and models to the Hugging Face hub."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.push import PushOptions, push_folder

COMMAND = Command(
    name="push",
    summary="Send samples as a data set with a card, the scores of a model, or a model or adapter after training to "
    "the Hugging Face hub. Without --send it shows what would be sent. A new repository is private unless --public is "
    "given; files with texts that look like secrets are refused. Needs newskills[hf]; for samples and scores also "
    "newskills[analysis].",
    options=PushOptions,
    result=push_folder,
    examples=(
        "ns push results --to hf://datasets/me/my-samples",
        "ns push results/large --to hf://me/my-model --hub_dataset gsm8k=openai/gsm8k:main --send",
        "ns push trained --to hf://me/my-model --results results/trained --send",
    ),
)
