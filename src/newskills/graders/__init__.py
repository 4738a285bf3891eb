# SPDX-License-Identifier: Apache-2.0
"""(record) → Score. Names of graders, and how one is made from its settings."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction, isfunction, signature
from typing import TypeGuard

from newskills.base.errors import ConfigError, guard
from newskills.base.protocols import ExecutingGrader, Grader
from newskills.base.records import Failure, Row, Score
from newskills.base.registry import Registry
from newskills.config.settings import read_config

GRADERS = Registry(
    "grader",
    {
        "math": "newskills.graders.math.grader:MathGrader",
        "multichoice": "newskills.graders.multichoice:MultichoiceGrader",
        "math_multilingual": "newskills.graders.multilingual:MultilingualMathGrader",
        "multichoice_multilingual": "newskills.graders.multilingual:MultilingualMultichoiceGrader",
        "reasoning_gym": "newskills.graders.reasoning_gym:ReasoningGymGrader",
        "evalplus": "newskills.graders.code.evalplus:EvalPlusGrader",
        "code_tests": "newskills.graders.code.tests:CodeTestsGrader",
        "classeval": "newskills.graders.code.classeval:ClassEvalGrader",
        "code_exec": "newskills.graders.code.printed:CodeExecGrader",
        "livecodebench": "newskills.graders.code.stdio:LiveCodeBenchGrader",
        "livecodebench_pro": "newskills.graders.code.packages:LiveCodeBenchProGrader",
        "livebench_coding": "newskills.graders.code.stdio:LiveBenchCodingGrader",
        "bigcodebench": "newskills.graders.code.units:BigCodeBenchGrader",
        "human_eval_infilling": "newskills.graders.code.infilling:InfillingGrader",
        "verilog_eval": "newskills.graders.code.hardware:VerilogGrader",
        "compute-eval": "newskills.graders.code.hardware:ComputeEvalGrader",
        "kernelbench": "newskills.graders.code.hardware:KernelBenchGrader",
        "swe_bench": "newskills.graders.software.swe_bench:SweBenchGrader",
        "swe_bench_pro": "newskills.graders.software.swe_bench_pro:SweBenchProGrader",
        "software_tests": "newskills.graders.software.tests:SoftwareTestsGrader",
        "terminal_tests": "newskills.graders.software.terminal:TerminalTestsGrader",
        "environment_reward": "newskills.graders.judges.environment_reward:EnvironmentRewardGrader",
        "scicode": "newskills.graders.code.scicode:SciCodeGrader",
        "ioi": "newskills.graders.code.contest:IOIGrader",
        "icpc": "newskills.graders.code.contest:ICPCGrader",
        "ccc": "newskills.graders.code.contest:CCCGrader",
        "bird": "newskills.graders.code.sql:BirdGrader",
        "lean4-proof": "newskills.graders.lean.grader:LeanProofGrader",
        "lean4-statement": "newskills.graders.lean.statement:LeanStatementGrader",
        "verina-code": "newskills.graders.lean.verina:VerinaCodeGrader",
        "verina-spec": "newskills.graders.lean.verina:VerinaSpecGrader",
        "bfcl": "newskills.graders.tool_calls.grader:ToolCallGrader",
        "api_bank": "newskills.graders.tool_calls.api_bank:ApiBankGrader",
        "agentdojo": "newskills.graders.tool_calls.agentdojo:AgentDojoGrader",
        "agentharm": "newskills.graders.tool_calls.agentharm:AgentHarmGrader",
        "tau2": "newskills.graders.tau2.grader:Tau2Grader",
        "json_schema": "newskills.graders.json_schema:JsonSchemaGrader",
        "if": "newskills.graders.instructions.grader:IFEvalGrader",
        "ifbench": "newskills.graders.instructions.grader:IFBenchGrader",
        "koifeval": "newskills.graders.instructions.grader:KoIFEvalGrader",
        "followbench": "newskills.graders.instructions.followbench:FollowBenchGrader",
        "multi-if": "newskills.graders.instructions.multi_if:MultiIFGrader",
        "exact": "newskills.graders.exact:ExactGrader",
        "literal": "newskills.graders.literal:LiteralGrader",
        "dsbench": "newskills.graders.dsbench:DSBenchGrader",
        "option_set": "newskills.graders.option_set:OptionSetGrader",
        "jeebench": "newskills.graders.option_set:JEEBenchGrader",
        "critpt": "newskills.graders.critpt:CritPtGrader",
        "short_answer": "newskills.graders.short_answer:ShortAnswerGrader",
        "longfact": "newskills.graders.longfact:LongFactGrader",
        "loglikelihood": "newskills.graders.loglikelihood:LoglikelihoodGrader",
        "perplexity": "newskills.graders.loglikelihood:PerplexityGrader",
        "likelihood_mass": "newskills.graders.loglikelihood:LikelihoodMassGrader",
        "lm_eval": "newskills.graders.reading.lm_eval:HarnessGrader",
        "verdict": "newskills.graders.judges.verdict:VerdictGrader",
        "strongreject": "newskills.graders.judges.strongreject:StrongRejectGrader",
        "hotpotqa": "newskills.graders.hotpotqa:HotpotGrader",
        "gaia": "newskills.graders.gaia:GaiaGrader",
        "table_program": "newskills.graders.reading.table_program:TableProgramGrader",
        "legalbench": "newskills.graders.reading.legal:LegalGrader",
        "new_rules": "newskills.graders.reading.new_rules:NewRulesGrader",
        "mathvista": "newskills.graders.reading.mathvista:MathVistaGrader",
        "memory": "newskills.graders.reading.memories:MemoryGrader",
        "document": "newskills.graders.documents.grader:DocumentGrader",
        "translation": "newskills.graders.translation:TranslationGrader",
        "ruler": "newskills.graders.long_context:RulerGrader",
        "ruler2": "newskills.graders.long_context:Ruler2Grader",
        "mrcr": "newskills.graders.long_context:MrcrGrader",
        "graphwalks": "newskills.graders.long_context:GraphwalksGrader",
        "long_text": "newskills.graders.long_text:LongTextGrader",
        "audio": "newskills.graders.audio.grader:AudioGrader",
        "contextasr": "newskills.graders.audio.names:ContextASRGrader",
        "contextual_earnings22": "newskills.graders.audio.names:EarningsGrader",
        "audio_rating": "newskills.graders.audio.rating:AudioRatingGrader",
        "mmau-pro": "newskills.graders.audio.rating:CriteriaGrader",
        "specdec": "newskills.graders.specdec:SpecDecGrader",
        "arena": "newskills.graders.judges.arena:ArenaGrader",
        "rating": "newskills.graders.judges.arena:RatingGrader",
        "eq_bench": "newskills.graders.eq_bench:EqBenchGrader",
        "answer-judgement": "newskills.graders.judges.agreement:AnswerJudgementGrader",
        "gradingbench": "newskills.graders.judges.agreement:GradingGrader",
        "livebench": "newskills.graders.livebench.grader:LiveBenchGrader",
        "grid_match": "newskills.graders.grid:GridGrader",
        "logic_grid": "newskills.graders.logic_grid:LogicGridGrader",
        "comet": "newskills.graders.trained:CometGrader",
        "nvembed": "newskills.graders.trained:NearestOptionGrader",
        "judgement": "newskills.graders.judges.judgement:JudgementGrader",
        "rubric": "newskills.graders.judges.rubric:RubricGrader",
        "mark": "newskills.graders.judges.answer_mark:MarkGrader",
    },
    group="newskills.graders",
    aliases={"exact_match": "exact"},
)


class FunctionGrader:
    """A plain function `(record) → Score` as a grader; its attribute `version`, where it has one, is the version."""

    def __init__(self, function: Callable[[Row], Score]) -> None:
        self.name = function.__name__
        self.version = str(getattr(function, "version", "1"))
        self._function = function

    def grade(self, record: Row) -> Score:
        """Return what the function gives for `record`. Raises ConfigError where that is anything but a Score."""
        score = self._function(record)
        if not isinstance(score, Score):
            raise ConfigError(f"Grader '{self.name}' gave {type(score).__name__}, not a Score.")
        return score


def make_grader(name: str, config: Row) -> Grader | ExecutingGrader:
    """Make the grader called `name` with its settings.

    A grader is a class with a frozen struct `Config` beside it, made with that struct, a class without one, or a
    plain function of a record; those take no settings. Raises UnknownNameError, ConfigError for a key or a value that
    does not fit and for a class that fails when it is made.
    """
    factory = GRADERS.get(name)
    settings = getattr(factory, "Config", None)
    if settings is None and config:
        raise ConfigError(f"Grader '{name}' has no settings, but {', '.join(sorted(config))} was given.")
    if isfunction(factory) and signature(factory).parameters:
        return FunctionGrader(factory)
    if settings is None:
        arguments = []
    else:
        arguments = [read_config(settings, config, f"eval_config of grader '{name}'")]
    made = guard(lambda: factory(*arguments))
    if isinstance(made, Failure):
        raise ConfigError(f"Grader '{name}' cannot be made: {made.message}")
    if not isinstance(made, Grader | ExecutingGrader):
        raise ConfigError(f"Grader '{name}' is not a grader: it needs `name`, `version` and `grade(record)`.")
    return made


def is_executing(grader: Grader | ExecutingGrader) -> TypeGuard[ExecutingGrader]:
    """Return whether a grader runs code or asks models (`async def grade(record, kit)`).

    Others compute, in a worker process.
    """
    return iscoroutinefunction(grader.grade)


def needs_sandbox(grader: Grader | ExecutingGrader) -> bool:
    """Return whether a grader runs code in the sandbox.

    Graders that run something else set their attribute `needs_sandbox` to False.
    """
    return is_executing(grader) and getattr(grader, "needs_sandbox", True)


def cpu_seconds(grader: Grader | ExecutingGrader) -> float:
    """Return the CPU seconds that one record may take: the grader's setting `timeout`, where it has one, else 10."""
    return float(getattr(getattr(grader, "config", None), "timeout", 10.0))
