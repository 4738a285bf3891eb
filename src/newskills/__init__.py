# SPDX-License-Identifier: Apache-2.0
"""newskills: generate data, train, evaluate. The Python API mirrors the commands and is loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from newskills._version import __version__

if TYPE_CHECKING:
    from newskills._api import (
        Arguments,
        Generation,
        aevaluate,
        agenerate,
        aggregate_answers,
        aimo_evaluate,
        aimo_evaluate_all,
        aimo_evaluate_checkpoints,
        aimo_generate,
        aimo_regenerate_summary,
        aimo_train,
        average_checkpoints,
        cancel,
        compare,
        completion,
        compute_metrics,
        convert,
        critpt,
        diagnose,
        distill,
        doctor,
        dpo,
        eval,
        evaluate,
        evaluate_async,
        experiments,
        export,
        generate,
        grade,
        grpo,
        grpo_nemo_rl,
        import_results,
        improve,
        info,
        judge_agreement,
        kto,
        kuberay,
        list_agents,
        list_environments,
        list_names,
        load_test,
        logs,
        merge_chunks,
        merge_lora,
        mirror,
        nemo_evaluator,
        nemo_gym_rollouts,
        plan,
        plan_eval,
        ppo_verl,
        prepare_data,
        prepare_training_data,
        profile_evaluate,
        push,
        query,
        quickstart,
        regrade,
        rehearse,
        report,
        resume,
        retrieve_similar,
        reward_model,
        robust_eval,
        run_cmd,
        samples,
        scan,
        serve_evals,
        serve_gateway,
        serve_gym,
        serve_rewards,
        serve_sandbox,
        serve_tinker,
        serve_view,
        setup,
        sft,
        sft_nemo_rl,
        start_server,
        status,
        summarize_results,
        summarize_robustness,
        swe_bench,
        tinker_rl,
        tinker_sft,
        train_megatron_lm,
        validate,
        why,
        wrap_arguments,
    )
    from newskills._api.objects import Model
    from newskills.base.benchmark import Benchmark, Group
    from newskills.base.records import Number, Report
    from newskills.benchmarks.data import PreparedData
    from newskills.launch.declarative import Command, CommandGroup, HardwareConfig, Pipeline
    from newskills.launch.experiments import Experiment
    from newskills.launch.scripts.clients import EvalScript, GenerationClientScript, SummarizeScript
    from newskills.launch.scripts.gym_clients import NemoGymRolloutsScript
    from newskills.launch.scripts.script import BaseJobScript, SandboxScript, ServerScript
    from newskills.launch.scripts.unit_clients import EvalClientScript
    from newskills.launch.states import JobState
    from newskills.pipelines.data.aggregate_answers import AggregatedAnswers
    from newskills.pipelines.data.merge_chunks import MergedChunks
    from newskills.pipelines.data.mirror import MirrorFolder
    from newskills.pipelines.data.retrieve_similar import SimilarFile
    from newskills.pipelines.evaluation.critpt import CritPtFile
    from newskills.pipelines.evaluation.evaluation import Evaluation
    from newskills.pipelines.evaluation.swe_bench import SweBenchFile
    from newskills.pipelines.grading.work import Graded
    from newskills.pipelines.invocations import Invocation
    from newskills.pipelines.rehearsal.rehearse import RehearsalCheck
    from newskills.pipelines.results.diagnose import FailureReport
    from newskills.pipelines.results.push import Push
    from newskills.pipelines.results.scan import Scan
    from newskills.pipelines.serving.ended import EndedService, RunningService
    from newskills.pipelines.serving.sandbox import SandboxService
    from newskills.pipelines.start.agents import ListedAgent
    from newskills.pipelines.start.benchmark_list import ListedName
    from newskills.pipelines.start.doctor import DoctorFinding
    from newskills.pipelines.start.environments import ListedLeftover
    from newskills.pipelines.start.quickstart import QuickstartOutcome
    from newskills.pipelines.submission.plan import CommandPlan
    from newskills.pipelines.training.methods.running import TrainingOutcome
    from newskills.pipelines.training.service import ServiceTraining
    from newskills.recipes.improve.loop import Improvement
    from newskills.run.hosting.servers import EndedServer
    from newskills.run.load_testing.result import LoadTest
    from newskills.run.planning.spec import RunResult
    from newskills.run.reporting.robustness import RobustnessSummary
    from newskills.run.reporting.summarize import Summary
    from newskills.run.validation.checks import Validation
    from newskills.train.data.card import Card
    from newskills.view.comparison.paired_runs import Comparison
    from newskills.view.comparison.planning import EvalPlan
    from newskills.view.comparison.regrade import Regraded
    from newskills.view.comparison.why import Explanation
    from newskills.view.judge_agreement import JudgeAgreement
    from newskills.view.samples import SelectedSample

OBJECTS = {
    "AggregatedAnswers": "newskills.pipelines.data.aggregate_answers",
    "BaseJobScript": "newskills.launch.scripts.script",
    "Benchmark": "newskills.base.benchmark",
    "Card": "newskills.train.data.card",
    "Command": "newskills.launch.declarative",
    "CommandGroup": "newskills.launch.declarative",
    "CommandPlan": "newskills.pipelines.submission.plan",
    "Comparison": "newskills.view.comparison.paired_runs",
    "CritPtFile": "newskills.pipelines.evaluation.critpt",
    "DoctorFinding": "newskills.pipelines.start.doctor",
    "EndedServer": "newskills.run.hosting.servers",
    "EndedService": "newskills.pipelines.serving.ended",
    "EvalClientScript": "newskills.launch.scripts.unit_clients",
    "EvalPlan": "newskills.view.comparison.planning",
    "EvalScript": "newskills.launch.scripts.clients",
    "Evaluation": "newskills.pipelines.evaluation.evaluation",
    "Experiment": "newskills.launch.experiments",
    "Explanation": "newskills.view.comparison.why",
    "FailureReport": "newskills.pipelines.results.diagnose",
    "Generation": "newskills._api.objects",
    "GenerationClientScript": "newskills.launch.scripts.clients",
    "Graded": "newskills.pipelines.grading.work",
    "Group": "newskills.base.benchmark",
    "HardwareConfig": "newskills.launch.declarative",
    "Improvement": "newskills.recipes.improve.loop",
    "Invocation": "newskills.pipelines.invocations",
    "JobState": "newskills.launch.states",
    "JudgeAgreement": "newskills.view.judge_agreement",
    "ListedAgent": "newskills.pipelines.start.agents",
    "ListedLeftover": "newskills.pipelines.start.environments",
    "ListedName": "newskills.pipelines.start.benchmark_list",
    "LoadTest": "newskills.run.load_testing.result",
    "MergedChunks": "newskills.pipelines.data.merge_chunks",
    "MirrorFolder": "newskills.pipelines.data.mirror",
    "Model": "newskills._api.objects",
    "NemoGymRolloutsScript": "newskills.launch.scripts.gym_clients",
    "Number": "newskills.base.records",
    "Pipeline": "newskills.launch.declarative",
    "PreparedData": "newskills.benchmarks.data",
    "Push": "newskills.pipelines.results.push",
    "QuickstartOutcome": "newskills.pipelines.start.quickstart",
    "Regraded": "newskills.view.comparison.regrade",
    "RehearsalCheck": "newskills.pipelines.rehearsal.rehearse",
    "Report": "newskills.base.records",
    "RobustnessSummary": "newskills.run.reporting.robustness",
    "RunResult": "newskills.run.planning.spec",
    "RunningService": "newskills.pipelines.serving.ended",
    "SandboxScript": "newskills.launch.scripts.script",
    "SandboxService": "newskills.pipelines.serving.sandbox",
    "Scan": "newskills.pipelines.results.scan",
    "SelectedSample": "newskills.view.samples",
    "ServerScript": "newskills.launch.scripts.script",
    "ServiceTraining": "newskills.pipelines.training.service",
    "SimilarFile": "newskills.pipelines.data.retrieve_similar",
    "SummarizeScript": "newskills.launch.scripts.clients",
    "Summary": "newskills.run.reporting.summarize",
    "SweBenchFile": "newskills.pipelines.evaluation.swe_bench",
    "TrainingOutcome": "newskills.pipelines.training.methods.running",
    "Validation": "newskills.run.validation.checks",
}
"""What pipelines are made of, and what functions return → the module that has it."""

__all__ = [
    "AggregatedAnswers",
    "Arguments",
    "BaseJobScript",
    "Benchmark",
    "Card",
    "Command",
    "CommandGroup",
    "CommandPlan",
    "Comparison",
    "CritPtFile",
    "DoctorFinding",
    "EndedServer",
    "EndedService",
    "EvalClientScript",
    "EvalPlan",
    "EvalScript",
    "Evaluation",
    "Experiment",
    "Explanation",
    "FailureReport",
    "Generation",
    "GenerationClientScript",
    "Graded",
    "Group",
    "HardwareConfig",
    "Improvement",
    "Invocation",
    "JobState",
    "JudgeAgreement",
    "ListedAgent",
    "ListedLeftover",
    "ListedName",
    "LoadTest",
    "MergedChunks",
    "MirrorFolder",
    "Model",
    "NemoGymRolloutsScript",
    "Number",
    "Pipeline",
    "PreparedData",
    "Push",
    "QuickstartOutcome",
    "Regraded",
    "RehearsalCheck",
    "Report",
    "RobustnessSummary",
    "RunResult",
    "RunningService",
    "SandboxScript",
    "SandboxService",
    "Scan",
    "SelectedSample",
    "ServerScript",
    "ServiceTraining",
    "SimilarFile",
    "SummarizeScript",
    "Summary",
    "SweBenchFile",
    "TrainingOutcome",
    "Validation",
    "__version__",
    "aevaluate",
    "agenerate",
    "aggregate_answers",
    "aimo_evaluate",
    "aimo_evaluate_all",
    "aimo_evaluate_checkpoints",
    "aimo_generate",
    "aimo_regenerate_summary",
    "aimo_train",
    "average_checkpoints",
    "cancel",
    "compare",
    "completion",
    "compute_metrics",
    "convert",
    "critpt",
    "diagnose",
    "distill",
    "doctor",
    "dpo",
    "eval",
    "evaluate",
    "evaluate_async",
    "experiments",
    "export",
    "generate",
    "grade",
    "grpo",
    "grpo_nemo_rl",
    "import_results",
    "improve",
    "info",
    "judge_agreement",
    "kto",
    "kuberay",
    "list_agents",
    "list_environments",
    "list_names",
    "load_test",
    "logs",
    "merge_chunks",
    "merge_lora",
    "mirror",
    "nemo_evaluator",
    "nemo_gym_rollouts",
    "plan",
    "plan_eval",
    "ppo_verl",
    "prepare_data",
    "prepare_training_data",
    "profile_evaluate",
    "push",
    "query",
    "quickstart",
    "regrade",
    "rehearse",
    "report",
    "resume",
    "retrieve_similar",
    "reward_model",
    "robust_eval",
    "run_cmd",
    "samples",
    "scan",
    "serve_evals",
    "serve_gateway",
    "serve_gym",
    "serve_rewards",
    "serve_sandbox",
    "serve_tinker",
    "serve_view",
    "setup",
    "sft",
    "sft_nemo_rl",
    "start_server",
    "status",
    "summarize_results",
    "summarize_robustness",
    "swe_bench",
    "tinker_rl",
    "tinker_sft",
    "train_megatron_lm",
    "validate",
    "why",
    "wrap_arguments",
]


if not TYPE_CHECKING:  # with it a checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name in OBJECTS:
            from importlib import import_module

            return getattr(import_module(OBJECTS[name]), name)
        if name in __all__:
            from newskills import _api

            return getattr(_api, name)
        raise AttributeError(f"module 'newskills' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
