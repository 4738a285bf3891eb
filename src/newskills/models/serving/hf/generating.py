# SPDX-License-Identifier: Apache-2.0
"""transformers' own `generate` for a batch that is computed to its end: any model, also one that sees images.

Tokens are chosen by our own rule all the same, so that seeds, settings and log-probabilities mean the same here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from newskills.models.serving.hf.choosing import choose_tokens
from newskills.models.serving.hf.sequences import TokenSequence


def continue_sequences(
    model: Any, sequences: Sequence[TokenSequence], ended: Callable[[TokenSequence], bool]
) -> None:
    """Continue the sequences until all of them have `ended`. Those with images must all have some."""
    from transformers import GenerationConfig

    device = model.get_input_embeddings().weight.device
    longest = max(sequence.length for sequence in sequences)
    rows = [[0] * (longest - each.length) + each.all_ids for each in sequences]
    masks = [[0] * (longest - each.length) + [1] * each.length for each in sequences]
    inputs: dict[str, Tensor] = {
        "input_ids": torch.tensor(rows, device=device),
        "attention_mask": torch.tensor(masks, device=device),
    }
    for name in sequences[0].inputs:
        parts = [sequence.inputs[name] for sequence in sequences]
        if parts[0].shape[1:2] == (len(sequences[0].ids),):  # something about each token, such as its kind
            parts = [torch.nn.functional.pad(part, (longest - part.shape[1], 0)) for part in parts]
        inputs[name] = torch.cat(parts).to(device)
    running = dict(enumerate(sequences))

    def chosen(_: Tensor, scores: Tensor) -> Tensor:
        """Choose for those that run; the others get the first token of the vocabulary, which nobody reads."""
        places = list(running)
        tokens = choose_tokens(scores[places].float(), [running[place] for place in places])
        forced = torch.full_like(scores, -torch.inf)
        forced[:, 0] = 0
        forced[places, 0] = -torch.inf
        forced[places, tokens] = 0
        return forced

    def all_ended(ids: Tensor, _: Tensor) -> Tensor:
        for place in [place for place, sequence in running.items() if ended(sequence)]:
            del running[place]
        return torch.full((ids.shape[0],), not running, device=ids.device)

    plan = GenerationConfig(do_sample=False, max_new_tokens=max(each.limit for each in sequences), pad_token_id=0)
    model.generate(
        **inputs,
        generation_config=plan,
        logits_processor=[chosen],
        stopping_criteria=[all_ended],
        eos_token_id=None,
    )
