# SPDX-License-Identifier: Apache-2.0
"""How likely a model finds a whole text, window by window."""

from __future__ import annotations

from newskills.base.errors import DataError
from newskills.base.protocols import Kit, Model
from newskills.base.records import Attempt, Request, Sample
from newskills.solve.tasks.lm_eval import HarnessSolver, HarnessSolverConfig


class PerplexitySolver(HarnessSolver):
    """Rows have `text`. Field written: `loglikelihood`, the natural logarithm of its probability.

    Every token is predicted once, with as much of the text before it as the window holds: the rolling log-likelihood
    of lm_eval. Raises DataError for a row without a text; ConfigError without `++tokenizer`, BadRequestError for a
    server without log-probabilities of the prompt.
    """

    Config = HarnessSolverConfig

    async def probe(self, model: Model) -> None:
        """Ask for log-probabilities of a prompt. Raises BadRequestError for a server that does not give them."""
        await self._likelihoods.probe(model)

    def request(self, sample: Sample) -> Request:
        """Return the first window's request. Raises DataError, ConfigError."""
        text = sample.row.get("text")
        if not isinstance(text, str) or not text:
            raise DataError(f"Row {sample.id} has no `text`.")
        rolling = {"kind": "loglikelihood_rolling", "text": text}
        return super().request(Sample(id=sample.id, row={"requests": [rolling], "contexts": []}))

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        attempt = await super().solve(sample, request, kit)
        ((loglikelihood,),) = attempt.fields.pop("responses")
        attempt.fields["loglikelihood"] = loglikelihood
        return attempt
