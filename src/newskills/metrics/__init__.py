# SPDX-License-Identifier: Apache-2.0
"""Scores → numbers with intervals, by name.

Add a metric: a class derived from `metrics.counting.base.ScoreMetric` (or with the methods of
`base.protocols.Metric`), and a row in `METRICS` (or the entry point `newskills.metrics` of another distribution, or
`module::Class` on use).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from newskills.base.errors import ConfigError, suggest
from newskills.base.registry import Registry

if TYPE_CHECKING:
    from newskills.base.protocols import Metric

VERSION = "3"
"""Raised whenever a figure of a metric may change for the same records; stands beside its name in results."""

METRICS = Registry(
    "metric",
    {
        "math": "newskills.metrics.math:MathMetric",
        "multichoice": "newskills.metrics.math:MathMetric",
        "math_multilingual": "newskills.metrics.multilingual:MultilingualMetric",
        "multichoice_multilingual": "newskills.metrics.multilingual:MultilingualMetric",
        "weighted-math": "newskills.metrics.multilingual:WeightedMathMetric",
        "translation": "newskills.metrics.translation:TranslationMetric",
        "ruler": "newskills.metrics.long_context:ShareMetric",
        "ruler2": "newskills.metrics.long_context:Ruler2Metric",
        "mrcr": "newskills.metrics.long_context:MrcrMetric",
        "graphwalks": "newskills.metrics.long_context:GraphwalksMetric",
        "aalcr": "newskills.metrics.long_context:AalcrMetric",
        "long_text": "newskills.metrics.sections.tasks:LongTextMetric",
        "arena": "newskills.metrics.arena:ArenaMetric",
        "alpaca_eval": "newskills.metrics.official.alpaca_eval:AlpacaEvalMetric",
        "mt-bench": "newskills.metrics.arena:RatingMetric",
        "rating": "newskills.metrics.arena:RatingMetric",
        "wildbench": "newskills.metrics.official.wildbench:WildBenchMetric",
        "eq_bench": "newskills.metrics.eq_bench:EqBenchMetric",
        "answer-judgement": "newskills.metrics.agreement:AnswerJudgementMetric",
        "gradingbench": "newskills.metrics.agreement:GradingMetric",
        "evalplus": "newskills.metrics.programs.evalplus:EvalPlusMetric",
        "code_tests": "newskills.metrics.programs.code:CodeMetric",
        "classeval": "newskills.metrics.programs.classeval:ClassEvalMetric",
        "livecodebench": "newskills.metrics.programs.code:CodeMetric",
        "livecodebench_pro": "newskills.metrics.programs.code:CodeMetric",
        "livebench_coding": "newskills.metrics.programs.code:CodeMetric",
        "bigcodebench": "newskills.metrics.programs.code:CodeMetric",
        "human_eval_infilling": "newskills.metrics.programs.code:CodeMetric",
        "compute-eval": "newskills.metrics.programs.code:CodeMetric",
        "scicode": "newskills.metrics.programs.scicode:SciCodeMetric",
        "ioi": "newskills.metrics.programs.contest:ContestMetric",
        "icpc": "newskills.metrics.programs.contest:ICPCMetric",
        "ccc": "newskills.metrics.programs.contest:CCCMetric",
        "bird": "newskills.metrics.programs.code:BirdMetric",
        "lean4-proof": "newskills.metrics.lean:LeanMetric",
        "lean4-statement": "newskills.metrics.lean:LeanMetric",
        "document": "newskills.metrics.sections.documents:DocumentMetric",
        "agentharm": "newskills.metrics.sections.agentharm:AgentHarmMetric",
        "agentdojo": "newskills.metrics.sections.attacked:AttackedMetric",
        "tau2": "newskills.metrics.tau2:Tau2Metric",
        "swe-bench": "newskills.metrics.programs.swe_bench:SweBenchMetric",
        "terminal-bench": "newskills.metrics.programs.agents:TerminalMetric",
        "followbench": "newskills.metrics.official.followbench:FollowBenchMetric",
        "if": "newskills.metrics.instructions:InstructionMetric",
        "multi-if": "newskills.metrics.sections.turns:MultiIFMetric",
        "physics": "newskills.metrics.math:MathMetric",
        "ugphysics": "newskills.metrics.math:MathMetric",
        "hle-aa": "newskills.metrics.official.hle:StructuredExamMetric",
        "hle": "newskills.metrics.official.hle:ExamMetric",
        "frontierscience-olympiad": "newskills.metrics.judged:JudgedMetric",
        "generic": "newskills.metrics.generic:GenericMetric",
        "legalbench": "newskills.metrics.sections.legal:LegalBenchMetric",
        "arc": "newskills.metrics.official.arc:ArcMetric",
        "livebench": "newskills.metrics.generic:LiveBenchMetric",
        "bfcl": "newskills.metrics.generic:GenericMetric",
        "critpt": "newskills.metrics.official.critpt:CritPtMetric",
        "simpleqa": "newskills.metrics.verdicts:SimpleQAMetric",
        "omniscience": "newskills.metrics.verdicts:OmniscienceMetric",
        "refusal": "newskills.metrics.counting.kinds:RefusalMetric",
        "strongreject": "newskills.metrics.counting.kinds:StrongRejectMetric",
        "bbq": "newskills.metrics.counting.kinds:BBQMetric",
        "hotpotqa": "newskills.metrics.hotpotqa:HotpotMetric",
        "hotpotqa_closedbook": "newskills.metrics.hotpotqa:HotpotMetric",
        "short_answer": "newskills.metrics.short_answer:ShortAnswerMetric",
        "short_answer_sections": "newskills.metrics.sections.answers:AnswerSectionsMetric",
        **dict.fromkeys(("audio", "contextasr", "contextual_earnings22"), "newskills.metrics.audio:AudioMetric"),
        **dict.fromkeys(
            ("mmau_pro_closed_form", "mmau_pro_instruction_following"), "newskills.metrics.audio:SuccessMetric"
        ),
        "yes_no": "newskills.metrics.ratios:YesNoMetric",
        "logic_grid": "newskills.metrics.ratios:LogicGridMetric",
        "specdec": "newskills.metrics.ratios:SpecDecMetric",
        "mmau_pro_open_ended": "newskills.metrics.audio:CriteriaMetric",
        "longfact": "newskills.metrics.longfact:LongFactMetric",
        "macro": "newskills.metrics.sections.means:MacroMetric",
        "balanced": "newskills.metrics.sections.balanced:BalancedMetric",
        "circular": "newskills.metrics.sections.circular:CircularMetric",
        "hallusionbench": "newskills.metrics.sections.circular:HallusionMetric",
        "rewardbench": "newskills.metrics.sections.reward:RewardBenchMetric",
        "rewardbench2": "newskills.metrics.sections.reward:RewardBench2Metric",
        "rewardbench2-ties": "newskills.metrics.sections.reward:TiesMetric",
        "rubric": "newskills.metrics.sections.rubric:RubricMetric",
        "processbench": "newskills.metrics.sections.processbench:ProcessBenchMetric",
        "lm_eval": "newskills.metrics.lm_eval:HarnessMetric",
        "loglikelihood": "newskills.metrics.loglikelihood:LoglikelihoodMetric",
        "perplexity": "newskills.metrics.loglikelihood:PerplexityMetric",
    },
    group="newskills.metrics",
)


def make_metric(name: str, **options: Any) -> Metric:
    """Return a fresh metric. Raises UnknownNameError for the name, ConfigError for an option that it does not have."""
    from inspect import signature

    maker = METRICS.get(name)
    parameters = signature(maker).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for option in options:
            if option not in parameters:
                raise ConfigError(f"The metric '{name}' has no option '{option}'{suggest(option, parameters)}")
    metric: Metric = maker(**options)
    return metric
