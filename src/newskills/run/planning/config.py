# SPDX-License-Identifier: Apache-2.0
"""The complete `++` schema of a generation; its annotations are the help page."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.records import Inference, Row
from newskills.base.registry import fold
from newskills.environments.config import EnvironmentConfig
from newskills.models.config import ServerConfig
from newskills.prompts.official.table import PromptSource
from newskills.sandbox.config import SandboxConfig
from newskills.solve.budget_forcing import BudgetForcing
from newskills.solve.code.config import CodeExecution
from newskills.solve.selection.config import ParallelThinking
from newskills.tools import runs_code

ALIASES: dict[str, str] = {
    "prompt": "prompt_config",
    "prompt.few_shot_examples": "few_shot_examples",
    "few_shot_as_turns": "few_shot_examples.as_turns",
    "batch_size": "max_concurrent_requests",
    "endpoint_type": "inference.endpoint_type",
    "temperature": "inference.temperature",
    "top_p": "inference.top_p",
    "top_k": "inference.top_k",
    "min_p": "inference.min_p",
    "random_seed": "inference.random_seed",
    "tokens_to_generate": "inference.tokens_to_generate",
    "repetition_penalty": "inference.repetition_penalty",
    "top_logprobs": "inference.top_logprobs",
    "reasoning_effort": "inference.reasoning_effort",
    "thinking_budget": "inference.thinking_budget",
    "extra_body": "inference.extra_body",
    "sc_tir": "solver_config",
    "agent_framework": "agent",
}
"""Other spellings of keys (older documents) → where they live now."""

DEPRECATED: dict[str, str] = {
    "use_completions_api": "write ++inference.endpoint_type=text instead.",
    "prompt_template": "the tokenizer's own chat template is used; leave the key out, or set ++tokenizer=NAME.",
    "agent_framework_repo": "put a checkout into FOLDER/source and write ++agent_config.folder=FOLDER.",
    "agent_framework_commit": "write ++agent_config.commit=COMMIT instead.",
    "eval_harness_repo": "the package swebench judges, as newskills[agents] pins it; leave the key out.",
    "eval_harness_commit": "the package swebench judges, as newskills[agents] pins it; leave the key out.",
    "offset": "chunks replace it: ++num_chunks=N ++chunk_id=K.",
}
"""Keys that are gone, or not there yet → what to do instead."""


Executions = Annotated[int, Meta(ge=0)]
REPLICA = "replica"
"""Roles of the main model's servers after the first, with their numbers from 1."""
CHAT, CODE_EXECUTION, SC_TIR, TOOLS = "chat", "code_execution", "sc_tir", "tools"
SOFTWARE_AGENT = "software_agent"
PROVER, AUTOFORMALIZE = "prover", "autoformalize"
LEAN_ROUNDS = (PROVER, AUTOFORMALIZE)
JUDGES = {
    "llm": "llm_judge",
    "math_judge": "math_judge",
    "ruled": "ruled_judge",
    "arena": "arena_judge",
    "turns": "turns_judge",
    "rubric": "rubric_judge",
    "agentharm": "agentharm_judge",
    "claims": "claims_judge",
    "comet": "comet_judge",
    "nvembed": "nvembed_judge",
    "step": "step_judge",
    "own": "own_judge",
    "panel": "panel_judge",
}
"""Kind of a judge → its solver."""
BEST_OF_N = "best_of_n"
VOTING = ("majority", "weighted_vote")
SELECTING = (*VOTING, BEST_OF_N, "genselect", "gensynthesis")
"""Solvers that draw several answers, by chat, code_execution or tools, for one."""
SEARCHING = ("claims_judge",)
"""Solvers that call tools themselves."""


class EndpointConfig(ServerConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The endpoint, and what is done with code in its replies (`++server.*`)."""

    code_execution: CodeExecution = CodeExecution()

    def beside(self, *urls: str) -> EndpointConfig:
        """Return the endpoint with the same model at further addresses, too."""
        return msgspec.structs.replace(self, more_base_urls=(*self.more_base_urls, *urls))

    def endpoint(self) -> EndpointConfig:
        """Return the settings of the endpoint, equal for all units that share it."""
        return msgspec.structs.replace(self, code_execution=CodeExecution())


class GenerationConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of one model over one input file (`++key=value`)."""

    input_file: Annotated[str, Meta(description="file of rows, one for each problem")] = ""
    output_file: Annotated[str, Meta(description="JSONL file to write (with chunks: the merged file)")] = ""
    prompt_config: Annotated[
        str | Row | None, Meta(description="prompt: name in the library, a .yaml path, or {user: …}")
    ] = None
    prompt_format: Annotated[
        Literal["ns", "openai"],
        Meta(description="ns: fill the template prompt_config; openai: each row has its `messages`"),
    ] = "ns"
    prompt_source: Annotated[
        PromptSource | None,
        Meta(
            description="wording of prompts that are published: official, newskills; default: official where "
            "ns prepare_data has downloaded it"
        ),
    ] = None
    official_prompts: Annotated[
        str, Meta(description="folder with official prompts (default: beside the rows, then in the data folder)")
    ] = ""
    prompt_suffix: Annotated[str, Meta(description="text to add to the end of the last user message")] = ""
    system_message: Annotated[str | None, Meta(description="system message, instead of the prompt's own")] = None
    user_message: Annotated[str | None, Meta(description="user template, instead of the prompt's own")] = None
    examples_type: Annotated[str | None, Meta(description="few-shot examples: name of a set")] = None
    few_shot_examples: Annotated[
        Row, Meta(description="override keys of the prompt's few_shot_examples section (prefix, template, …)")
    ] = {}
    code_tags: Annotated[
        str | None,
        Meta(
            description="how code is marked in the text, for few-shot examples and code_execution: qwen, llama3, …"
        ),
    ] = None
    start_assistant_response_key: Annotated[
        str | None, Meta(description="field of the row with the start of the assistant's answer")
    ] = None
    tokenizer: Annotated[
        str | None, Meta(description="tokenizer for chat templates and counting; default: the server's model")
    ] = None
    chat_template_kwargs: Annotated[Row, Meta(description="arguments for the chat template")] = {}
    server: EndpointConfig = EndpointConfig()
    models: Annotated[
        dict[str, EndpointConfig],
        Meta(description="more models by role, for a solver that uses several (++models.critic.model=NAME …)"),
    ] = {}
    inference: Inference = Inference()
    budget_forcing: BudgetForcing = BudgetForcing()
    max_samples: Annotated[int, Meta(ge=-1, description="only the first n rows (of the chunk); -1 = all")] = -1
    skip_filled: Annotated[bool, Meta(description="keep finished work of an earlier run")] = False
    max_concurrent_requests: Annotated[int, Meta(ge=1, description="largest number of requests in flight")] = 512
    most_concurrent_requests: Annotated[
        int,
        Meta(
            ge=0,
            description="the same while more make the server faster; 4096 for vllm, sglang, trtllm where "
            "max_concurrent_requests is not set",
        ),
    ] = 0
    context_overflow: Annotated[
        Literal["unscored", "wrong"],
        Meta(description="what a prompt is that exceeds the model's context: unscored, or an empty answer"),
    ] = "unscored"
    num_chunks: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="split the input into this many chunks")
    ] = None
    chunk_id: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="chunk to run, 0-based")] = None
    add_generation_stats: Annotated[bool, Meta(description="write start, end and duration of each row")] = True
    count_prompt_tokens: Annotated[bool, Meta(description="count prompt tokens with the tokenizer")] = False
    generation_key: Annotated[str, Meta(min_length=1, description="field for the model's text")] = "generation"
    async_position_key: Annotated[
        str, Meta(min_length=1, description="field for the row's position, in the unfinished file")
    ] = "_async_position"
    dry_run: Annotated[bool, Meta(description="print the first prompt and stop")] = False
    solver: Annotated[
        str,
        Meta(
            min_length=1,
            description="how an answer is produced: chat, code_execution, sc_tir, module::maker; or from "
            "several samples per row: majority, weighted_vote, best_of_n, genselect, gensynthesis",
        ),
    ] = CHAT
    solver_config: Annotated[Row, Meta(description="settings of the solver (also ++sc_tir.*)")] = {}
    parallel_thinking: ParallelThinking = ParallelThinking()
    code_execution: Annotated[bool, Meta(description="run the code blocks of the answer (needs code_tags)")] = (
        False
    )
    total_code_executions_in_prompt: Annotated[
        Executions | tuple[Executions, ...] | None,
        Meta(
            description="number of code executions that the prompt mentions; or [min,max] to draw one per sample"
        ),
    ] = None
    override_max_code_executions: Annotated[bool, Meta(description="also use that number as the limit")] = False
    use_client_parsing: Annotated[
        bool, Meta(description="accepted only as false: the server parses the tool calls")
    ] = False
    tool_modules: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="tools that the model may call: python, mcp, tavily, exa, module::Class, file.py::function"
        ),
    ] = None
    tool_overrides: Annotated[Row, Meta(description="settings of the tools: {Provider: {key: value}}")] = {}
    schema_overrides: Annotated[
        Row,
        Meta(
            description="other names and descriptions for tools: "
            "{Provider: {tool: {name, description, parameters}}}"
        ),
    ] = {}
    max_tool_calls: Annotated[
        int, Meta(ge=-1, description="largest number of tool calls per row; -1 = 1,000")
    ] = -1
    agent: Annotated[
        str | None,
        Meta(
            description="agent that works on the task in a container of its own: bash, mini-swe-agent, swe-agent or "
            "openhands"
        ),
    ] = None
    agent_config: Annotated[Row, Meta(description="settings of the agent")] = {}
    agent_max_turns: Annotated[int, Meta(ge=1, description="largest number of requests of an agent per task")] = (
        100
    )
    environment: EnvironmentConfig = EnvironmentConfig()
    sandbox: SandboxConfig = SandboxConfig()
    wait_for_sandbox: Annotated[
        bool, Meta(description="wait until the sandbox server is up (at most endpoint_patience)")
    ] = False
    stop_phrase: Annotated[str | None, Meta(description="text that stops the generation")] = None
    remove_stop_phrases: Annotated[bool, Meta(description="remove the stop phrase from the text")] = True
    parse_reasoning: Annotated[bool, Meta(description="keep only the text after the model's reasoning")] = False
    end_reasoning_string: Annotated[str, Meta(min_length=1, description="text that ends the reasoning")] = (
        "</think>"
    )
    eval_type: Annotated[str | None, Meta(description="grader to run while generating")] = None
    eval_config: Annotated[Row, Meta(description="settings of the grader")] = {}
    structured_output: Annotated[
        Literal["HLE_JUDGE_AA"] | None, Meta(description="JSON schema that the answer must match")
    ] = None
    enable_audio: Annotated[
        bool, Meta(description="accepted for compatibility with NeMo-Skills; audio in a row is always sent")
    ] = True
    enable_audio_chunking: Annotated[
        bool, Meta(description="false: send audio in one piece, whatever audio_chunk_task_types says")
    ] = True
    audio_chunk_task_types: Annotated[
        tuple[str, ...] | None,
        Meta(description="task_type of rows whose long audio is sent in pieces, one request each: [ASR,AST]"),
    ] = None
    chunk_audio_threshold_sec: Annotated[
        float, Meta(gt=0, description="longest piece of audio in seconds, for these tasks")
    ] = 30.0
    drop_content_types: Annotated[
        tuple[str, ...], Meta(description="kinds of message parts that are not written to records")
    ] = ("audio_url", "input_audio")
    enable_litellm_cache: Annotated[
        bool, Meta(description="keep every reply on disk until the file is finished (tasks of several requests)")
    ] = False
    max_total_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="stop asking (exit code 4) once a run has read and written this many tokens, those of its "
            "earlier processes included; with a larger number, the same command resumes"
        ),
    ] = None
    max_cost: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="the same for what they cost, by server.price_per_million_input_tokens and "
            "server.price_per_million_output_tokens, and in their currency"
        ),
    ] = None
    endpoint_patience: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="seconds to wait for an endpoint that does not answer, before the run stops "
            "(resumable); default 1800; 60 for an endpoint that has never answered, unless a "
            "scheduler runs the job"
        ),
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="level of messages; debug: every request, reply and retry (never keys)"),
    ] = "info"

    def __post_init__(self) -> None:
        if (self.num_chunks is None) != (self.chunk_id is None):
            raise ValueError("num_chunks and chunk_id belong together: give both or neither")
        if self.num_chunks is not None and self.chunk_id is not None and self.chunk_id >= self.num_chunks:
            raise ValueError(f"chunk_id {self.chunk_id} must be smaller than num_chunks {self.num_chunks}")
        if self.inference.endpoint_type == "text" and self.inference.tokens_to_generate is None:
            raise ValueError("inference.endpoint_type=text needs inference.tokens_to_generate")
        server = self.server
        if self.max_cost is not None and None in (
            server.price_per_million_input_tokens,
            server.price_per_million_output_tokens,
        ):
            raise ValueError(
                "max_cost needs prices: also give ++server.price_per_million_input_tokens=PRICE and "
                "++server.price_per_million_output_tokens=PRICE"
            )
        self._check_code()
        self._check_tools()
        self._check_selection()
        self._check_agent()
        self._check_thinking()

    def _check_code(self) -> None:
        stated = self.total_code_executions_in_prompt
        if self.code_execution and not self.code_tags:
            raise ValueError("code_execution needs code_tags, for example ++code_tags=qwen")
        if self.code_execution and fold(self.solver) not in (CHAT, CODE_EXECUTION, *SELECTING):
            raise ValueError(
                f"code_execution is a separate solver, so it cannot be combined with solver={self.solver}"
            )
        if isinstance(stated, tuple) and (len(stated) not in (1, 2) or stated[0] > stated[-1]):
            raise ValueError("total_code_executions_in_prompt: expected a number or [min,max]")
        if self.override_max_code_executions and stated is None:
            raise ValueError("override_max_code_executions needs total_code_executions_in_prompt")
        if self.sandbox_window == 0:
            raise ValueError(
                f"one row needs {self.answers_of_a_row} sandbox sessions at once: raise sandbox.max_sessions"
                f" ({self.sandbox.max_sessions})"
            )

    def _check_tools(self) -> None:
        if self.use_client_parsing:
            raise ValueError("use_client_parsing: the server parses tool calls here; leave this key out")
        if not self.tool_modules:
            idle = [n for n in ("tool_overrides", "schema_overrides") if getattr(self, n)]
            if idle or fold(self.solver) == TOOLS:
                raise ValueError(
                    f"{', '.join(idle) or 'solver=tools'} needs tool_modules, for example ++tool_modules=[python]"
                )
            return
        if self.code_execution:
            raise ValueError("code_execution and tool_modules are two ways to run code: choose one of them")
        if fold(self.solver) not in (CHAT, TOOLS, *SEARCHING, *SELECTING):
            raise ValueError(
                f"tool_modules is a separate solver, so it cannot be combined with solver={self.solver}"
            )
        if self.inference.endpoint_type == "text":
            raise ValueError(
                "tool_modules needs inference.endpoint_type=chat or responses: text has no tool calls"
            )

    def _check_selection(self) -> None:
        if self.parallel_thinking.mode is None:
            return
        if self.selected_by:
            raise ValueError(
                f"parallel_thinking and solver={self.solver} both choose among several answers: use only one "
                "of them"
            )
        if self.solved_by not in (CHAT, CODE_EXECUTION, SC_TIR, TOOLS) and "::" not in self.solver:
            raise ValueError(
                f"parallel_thinking chooses among solutions, but solver={self.solver} does not write solutions"
            )

    def _check_agent(self) -> None:
        if self.agent is None:
            if self.agent_config:
                raise ValueError("agent_config needs agent, for example ++agent=bash")
            return
        if fold(self.solver) not in (CHAT, SOFTWARE_AGENT) or self.code_execution or self.tool_modules:
            raise ValueError(
                f"agent={self.agent} is a separate solver, so it cannot be combined with another solver, "
                "code_execution or tool_modules"
            )

    def _check_thinking(self) -> None:
        budget, forcing, limit = (
            self.inference.thinking_budget,
            self.budget_forcing,
            self.inference.tokens_to_generate,
        )
        if self.inference.endpoint_type != "text" and forcing != BudgetForcing():
            raise ValueError(
                "budget_forcing needs inference.endpoint_type=text: a chat endpoint cannot go on with a turn that the "
                "model has begun"
            )
        if not self.forces_thinking:
            if forcing != BudgetForcing():
                raise ValueError("budget_forcing needs inference.thinking_budget=N or budget_forcing.minimum=M")
            return
        if self.solved_by != CHAT or self.selected_by not in (None, *VOTING) or self.parallel_thinking.mode:
            raise ValueError(
                "on the text endpoint, thinking is limited where a row is asked once (solver=chat, also below "
                f"{' and '.join(VOTING)}), not by solver={self.selected_by or self.solved_by}"
            )
        if isinstance(budget, int) and budget >= (limit or 0):
            raise ValueError(
                f"inference.thinking_budget ({budget}) must be below inference.tokens_to_generate ({limit}), which "
                "is for thinking and answer together"
            )
        allowed = budget if isinstance(budget, int) else limit
        if forcing.minimum and (budget == "none" or forcing.minimum > (allowed or 0)):
            raise ValueError(
                f"budget_forcing.minimum ({forcing.minimum}) is above the tokens that the model may think"
            )

    @property
    def forces_thinking(self) -> bool:
        """Whether the length of thinking is forced here, and not by the server."""
        limited = self.inference.thinking_budget is not None or self.budget_forcing.minimum > 0
        return self.inference.endpoint_type == "text" and limited

    @property
    def selected_by(self) -> str | None:
        """Name of the solver that draws several answers and returns one; None where `solved_by` is all."""
        name = fold(self.solver)
        if name in SELECTING:
            return name
        return None

    @property
    def draws_several(self) -> bool:
        """Whether each row gets several answers of which one is returned, all of them drawn here."""
        thinking = self.parallel_thinking
        return self.selected_by is not None or (thinking.mode is not None and thinking.generation_dir is None)

    @property
    def sandbox_window(self) -> int | None:
        """Return how many requests may be in flight so that each answer has a sandbox session; None: any number."""
        here = not self.sandbox.host and self.sandbox.port is None
        if not (self.code_execution and here):
            return None
        sessions, answers = self.sandbox.max_sessions, self.answers_of_a_row
        if answers == 1:
            return sessions
        # Twice as many answers are under way as requests are in flight, so that endpoints stay busy.
        if answers > sessions:
            return 0
        return max(1, sessions // 2)

    @property
    def answers_of_a_row(self) -> int:
        """How many are drawn at once."""
        thinking = self.parallel_thinking
        if self.selected_by is not None:
            samples = self.solver_config.get("samples")
            if isinstance(samples, int):
                return samples
            return 16
        if thinking.mode is None or thinking.generation_dir is not None:
            return 1
        return thinking.num_initial_solutions or thinking.window_size

    @property
    def solved_by(self) -> str:
        """Name of the solver of single answers; `code_execution` and `tool_modules` name it, too."""
        if self.agent is not None:
            return SOFTWARE_AGENT
        if self.tool_modules and fold(self.solver) not in SEARCHING:
            return TOOLS
        if self.code_execution:
            return CODE_EXECUTION
        if self.selected_by:
            return CHAT
        if "::" in self.solver:
            return self.solver
        return fold(self.solver)

    @property
    def judges(self) -> bool:
        """Whether it judges answers that its rows hold."""
        return self.solved_by in JUDGES.values()

    @property
    def runs_code(self) -> bool:
        """Whether code in the model's text is run for its answers."""
        return self.solved_by in (CODE_EXECUTION, SC_TIR)

    @property
    def needs_sandbox(self) -> bool:
        """Whether code of the model is run, in its text, by a tool, or by Lean between rounds."""
        return self.runs_code or self.solved_by in LEAN_ROUNDS or runs_code(self.tool_modules or ())
