# SPDX-License-Identifier: Apache-2.0
"""Answers of a model of transformers that is in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from newskills.base.records import Message, Row
from newskills.prompts.renderer import load_prompt

TOP_P = 0.95


class GeneratedText(NamedTuple):
    """A text, and the mean log-probability of its tokens."""

    text: str
    logprob: float


class LocalModel:
    """A model of transformers with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer

    def prompt(self, name: str, row: Row, begun: str = "") -> str:
        """Return a prompt of the library as the model reads it, with `begun` of the answer. Raises ConfigError."""
        messages: list[Message] = load_prompt(name).messages(row)
        if not self.tokenizer.chat_template:
            return "\n\n".join(str(message.content) for message in messages) + "\n\n" + begun
        turns = [{"role": message.role, "content": message.content} for message in messages]
        text: str = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return text + begun

    def generate(
        self, prompts: Sequence[str], *, max_new_tokens: int, temperature: float = 0.0
    ) -> list[GeneratedText]:
        """Return one text for each prompt, all at once; temperature 0 is greedy."""
        import torch

        tokenizer, model = self.tokenizer, self.model
        side, pad, training = tokenizer.padding_side, tokenizer.pad_token, model.training
        tokenizer.padding_side = "left"
        if pad is None:
            tokenizer.pad_token = tokenizer.eos_token
        if temperature > 0:
            sampling = {"temperature": temperature, "top_p": TOP_P}
        else:
            sampling = {}
        try:
            model.eval()
            inputs = tokenizer(list(prompts), return_tensors="pt", padding=True, add_special_tokens=False)
            inputs.pop("token_type_ids", None)
            with torch.no_grad():
                made = model.generate(
                    **inputs.to(model.device),
                    max_new_tokens=max_new_tokens,
                    do_sample=temperature > 0,
                    pad_token_id=tokenizer.pad_token_id,
                    output_scores=True,
                    return_dict_in_generate=True,
                    **sampling,
                )
            scores = model.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
        finally:
            tokenizer.padding_side = side
            if pad is None:
                tokenizer.pad_token = None
            model.train(training)
        replies = made.sequences[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._text(ids, logprobs) for ids, logprobs in zip(replies, scores.tolist(), strict=True)]

    def _text(self, ids: list[int], logprobs: list[float]) -> GeneratedText:
        ends = self.model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        length = next((at + 1 for at, token in enumerate(ids) if token in ends), len(ids))
        text: str = self.tokenizer.decode(ids[:length], skip_special_tokens=True)
        return GeneratedText(text, sum(logprobs[:length]) / max(1, length))
