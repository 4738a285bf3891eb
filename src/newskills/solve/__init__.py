# SPDX-License-Identifier: Apache-2.0
"""How an answer is produced. Names of solvers, and how one is made from its parts and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from newskills.base.errors import ConfigError, guard
from newskills.base.registry import Registry

if TYPE_CHECKING:
    from newskills.base.protocols import Solver
    from newskills.base.records import Row
    from newskills.solve.parts import SolverParts

SOLVERS = Registry(
    "solver",
    {
        "chat": "newskills.solve.parts:chat",
        "check_contamination": "newskills.solve.judges.contamination:ContaminationSolver",
        "code_execution": "newskills.solve.parts:code_execution",
        "llm_judge": "newskills.solve.judges.judge:JudgeSolver",
        "claims_judge": "newskills.solve.judges.claims:ClaimsJudgeSolver",
        "math_judge": "newskills.solve.judges.judge:MathJudgeSolver",
        "panel_judge": "newskills.solve.judges.panel:PanelJudgeSolver",
        "ruled_judge": "newskills.solve.judges.judge:RuledJudgeSolver",
        "majority": "newskills.solve.selection.majority:MajoritySolver",
        "weighted_vote": "newskills.solve.selection.majority:WeightedVoteSolver",
        "best_of_n": "newskills.solve.selection.best_of_n:BestOfNSolver",
        "genselect": "newskills.solve.selection.genselect:GenSelectSolver",
        "gensynthesis": "newskills.solve.selection.gensynthesis:GenSynthesisSolver",
        "arena_judge": "newskills.solve.judges.several:ArenaJudgeSolver",
        "turns_judge": "newskills.solve.judges.several:TurnsJudgeSolver",
        "rubric_judge": "newskills.solve.judges.several:RubricJudgeSolver",
        "comet_judge": "newskills.solve.judges.trained:CometSolver",
        "nvembed_judge": "newskills.solve.judges.trained:NearestOptionSolver",
        "step_judge": "newskills.solve.judges.trained:StepSolver",
        "own_judge": "newskills.solve.judges.trained:OwnJudge",
        "critpt": "newskills.solve.tasks.critpt:CritPtSolver",
        "scicode": "newskills.solve.tasks.scicode:SciCodeSolver",
        "turns": "newskills.solve.turns:TurnsSolver",
        "loglikelihood": "newskills.solve.tasks.loglikelihood:LoglikelihoodSolver",
        "perplexity": "newskills.solve.tasks.perplexity:PerplexitySolver",
        "lm_eval": "newskills.solve.tasks.lm_eval:HarnessSolver",
        "sc_tir": "newskills.solve.selection.sc_tir:ScTirSolver",
        "agentdojo": "newskills.solve.calls.agentdojo:AgentDojoSolver",
        "agentharm": "newskills.solve.calls.agentharm:AgentHarmSolver",
        "agentharm_judge": "newskills.solve.calls.agentharm:AgentHarmJudgeSolver",
        "tau2": "newskills.solve.calls.tau2:Tau2Solver",
        "prover": "newskills.solve.tasks.lean:ProverSolver",
        "autoformalize": "newskills.solve.tasks.lean:AutoformalizeSolver",
        "tools": "newskills.solve.parts:tools",
        "function_calls": "newskills.solve.calls.function_calls:FunctionCallSolver",
        "memory_calls": "newskills.solve.calls.memory_calls:MemoryCallSolver",
        "software_agent": "newskills.solve.agents.rollout:software_agent",
        "verifiers": "newskills.solve.interactive.verifiers_environment:VerifiersSolver",
        "openenv": "newskills.solve.interactive.openenv_environment:OpenEnvSolver",
        "nemo_gym": "newskills.solve.interactive.gym_environment:GymSolver",
        "transcription": "newskills.solve.tasks.speech:TranscriptionSolver",
        "synthesis": "newskills.solve.tasks.speech:SynthesisSolver",
        "conversation_calls": "newskills.solve.calls.function_calls:ConversationCallSolver",
    },
    group="newskills.solvers",
)


def make_solver(name: str, parts: SolverParts, config: Row) -> Solver:
    """Return the solver called `name` with its settings.

    A maker is called with the parts, and with its struct `Config` where it has one. Raises UnknownNameError,
    ConfigError for a key or a value that does not fit and for a maker that fails.
    """
    from newskills.base.protocols import Solver
    from newskills.base.records import Failure
    from newskills.config.settings import read_config

    if "::" in name:
        from newskills.solve.generation_modules import refuse_task

        refuse_task(name)
    factory = SOLVERS.get(name)
    settings = getattr(factory, "Config", None)
    if settings is None and config:
        raise ConfigError(f"Solver '{name}' has no settings, but {', '.join(sorted(config))} was given.")
    if settings is None:
        arguments = []
    else:
        arguments = [read_config(settings, config, f"solver_config of solver '{name}'")]
    made = guard(lambda: factory(parts, *arguments))
    if isinstance(made, Failure):
        raise ConfigError(f"Solver '{name}' cannot be created: {made.message}")
    if not isinstance(made, Solver):
        raise ConfigError(f"'{name}' is not a solver: it needs `request(sample)` and `solve(sample, …)`.")
    return made
