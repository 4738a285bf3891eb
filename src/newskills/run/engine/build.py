# SPDX-License-Identifier: Apache-2.0
"""From a config to the objects of other rooms: prompt, tokenizer, solver, model, grader pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec
from msgspec import structs

from newskills.base.environment import AgentEnvironments
from newskills.base.errors import (
    BadRequestError,
    ConfigError,
    ContextLimitError,
    HttpError,
    WorkerStartError,
)
from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.protocols import Kit, Model, NeedsCheck, Sandbox, Solver, Tokenizer
from newskills.base.records import Message, Request, Row, Score
from newskills.environments import SESSIONS, make_environments
from newskills.environments.config import EnvironmentConfig
from newskills.graders import cpu_seconds, is_executing, make_grader, needs_sandbox
from newskills.models import MODELS, check_inference, make_model
from newskills.models.batch_apis import check_batch
from newskills.models.config import ServerConfig
from newskills.models.context import shorten_request
from newskills.models.parameters import is_reasoning_model
from newskills.models.tokenizer import ServerTokenizer, make_tokenizer
from newskills.prompts.code_tags import code_tags
from newskills.prompts.official.table import FOLDER as OFFICIAL
from newskills.prompts.official.table import entries_of, is_official, official_folders
from newskills.prompts.renderer import Prompt, PromptOverrides, load_prompt
from newskills.run.engine.adapters import SystemMergingModel, for_rendered_prompts, rendered_body
from newskills.run.engine.endpoint import ContextStrategy
from newskills.run.engine.grader_pool import ExecutingGrading, Grading, PoolGrading
from newskills.run.engine.tools import list_tools, tool_settings
from newskills.run.planning.config import CHAT, SC_TIR, SOFTWARE_AGENT, EndpointConfig, GenerationConfig
from newskills.sandbox.config import Limits, SandboxConfig
from newskills.solve import make_solver
from newskills.solve.agents.options import AgentOptions
from newskills.solve.calls.tool_loop import ToolOptions
from newskills.solve.chat import ChatSolver, ChatSolverOptions
from newskills.solve.code.execution import CodeOptions
from newskills.solve.parts import SolverParts
from newskills.solve.selection.config import LARGEST
from newskills.solve.structured import RESPONSE_FORMATS
from newskills.solve.tasks.speech import check_speech
from newskills.solve.thinking import ThinkingLimits
from newskills_sandbox.errors import ExecutionRefusedError
from newskills_sandbox.languages import language

LONGEST_COMMAND = 7 * 86400.0
"""Seconds that a command of an agent may ask for."""


class RunBuilder:
    """Builds what a run needs; `environ` is where keys are looked up. `notes`: what the user should be told, once.

    Tokenizers are shared by all that count or render with them, and closed with the recipe. `batch_folder`: of
    requests that are asked in batches.
    """

    def __init__(self, environ: Mapping[str, str], batch_folder: Path = Path("batches")) -> None:
        self.environ, self.batch_folder = environ, batch_folder
        self.notes: dict[str, None] = {}
        self._tokenizers: dict[tuple[str | None, EndpointConfig], Tokenizer] = {}

    def close(self) -> None:
        """Close what tokenizers hold open."""
        for tokenizer in self._tokenizers.values():
            if isinstance(tokenizer, ServerTokenizer):
                tokenizer.close()

    def prompt(self, config: GenerationConfig) -> Prompt:
        """Return the prompt of `config`. Raises ConfigError, UnknownNameError, DataError."""

        def examples(name: str) -> Sequence[Row] | None:
            from newskills.benchmarks.few_shot import few_shot_rows

            return few_shot_rows(name, None, config.input_file)

        return load_prompt(config.prompt_config, prompt_overrides(config), examples)

    def more_prompts(self, config: GenerationConfig) -> str:
        """Name the official prompts that the solver's settings ask for, with their hashes, for a run's fingerprint.

        Raises ConfigError, DataError.
        """
        names = [value for value in config.solver_config.values() if isinstance(value, str)]
        for value in config.solver_config.values():
            if isinstance(value, dict):
                names += [name for name in value.values() if isinstance(name, str)]
        load = self._loader(config)
        prompts = [load(name) for name in names if entries_of(name)]
        return ", ".join(f"{prompt.name} {prompt.hash}" for prompt in prompts if is_official(prompt.source))

    def _loader(self, config: GenerationConfig) -> Callable[[str], Prompt]:
        """Load further prompts by name, of the same source."""
        own = prompt_overrides(config)
        return partial(
            load_prompt,
            overrides=PromptOverrides(
                chat_template_kwargs=config.chat_template_kwargs,
                merge_system=own.merge_system,
                official_folders=own.official_folders,
                official_required=own.official_required,
            ),
        )

    def solver(self, config: GenerationConfig, prompt: Prompt) -> Solver:
        """Return the solver of `config`. Raises ConfigError (no tokenizer, settings), UnknownNameError, and what a
        server's tokenizer raises."""
        text = config.inference.endpoint_type == "text"
        template = self._template_tokenizer(config) if text else None
        counter = None
        if config.count_prompt_tokens:
            counter = self._tokenizer(config, needed=True)
        options = chat_options(config)
        if template is not None:
            options = structs.replace(
                options, extra_body={**options.extra_body, **rendered_body(config.inference)}
            )
        chat = ChatSolver(prompt, options, template=template, counter=counter)
        code = code_options(config)
        if config.runs_code and not text and code is not None and code.tags.new_turn:
            self.notes[
                f"The code tags {code.tags.name} are special tokens, which most chat endpoints remove from "
                "the text, so no code is detected. ++inference.endpoint_type=text keeps them."
            ] = None
        counts = config.solved_by != CHAT and config.inference.tokens_to_generate is not None
        tools = self._tool_options(config) if config.tool_modules else None
        token_counter = self._tokenizer(config, needed=False) if counts else None
        parts = SolverParts(
            chat=chat,
            code=code,
            tools=tools,
            counter=token_counter,
            stamp={
                "model": config.server.model,
                "prompt": f"{prompt.name} {prompt.hash}",
                "temperature": config.inference.temperature,
            },
            folder=Path(config.output_file).parent,
            data_dir=Path(config.input_file).parent,
            agent=agent_options(config),
            resumes=bool(config.output_file),
            load=self._loader(config),
        )
        return self._selecting_solver(config, parts)

    def _selecting_solver(self, config: GenerationConfig, parts: SolverParts) -> Solver:
        """Return the solver of single answers, within one that draws several where that is asked for. Raises as
        `solver`."""
        if config.draws_several:
            _check_sampling(config)
        if config.selected_by:
            base = make_solver(config.solved_by, parts, {})
            return make_solver(config.selected_by, structs.replace(parts, base=base), config.solver_config)
        solver = make_solver(config.solved_by, parts, config.solver_config)
        thinking = config.parallel_thinking
        if thinking.mode is None:
            return solver
        if thinking.window_size > LARGEST:
            self.notes[
                f"More than {LARGEST} solutions in one prompt: the model's choice becomes unreliable "
                f"(++parallel_thinking.window_size={thinking.window_size})."
            ] = None
        from newskills.solve.selection.parallel_thinking import parallel_thinking

        return parallel_thinking(structs.replace(parts, base=solver), thinking)

    def model(self, server: ServerConfig, concurrency: int) -> Model:
        """Return the model at `server`. Raises ConfigError, UnknownNameError, AuthError (no key)."""
        model = make_model(server, concurrency=concurrency, environ=self.environ)
        if server.merge_system:
            return SystemMergingModel(model)
        return model

    def for_prompts_of(self, config: GenerationConfig, server: ServerConfig, model: Model) -> Model:
        """Return `model` as `config` asks it: a text that a chat template has rendered gets no second mark."""
        if config.inference.endpoint_type == "text":
            tokenizer = self._tokenizer(config, needed=False)
        else:
            tokenizer = None
        if server.batch_api and server.merge_system:
            model = SystemMergingModel(model)
        if tokenizer is None:
            return model
        return for_rendered_prompts(model, MODELS.resolve(server.server_type), tokenizer)

    def check_model(self, config: GenerationConfig) -> None:
        """Raise ConfigError (a setting that the backend cannot honour), UnknownNameError, AuthError (no key)."""
        check_speech(config.server.server_type, config.solved_by)
        for server in (config.server, *config.models.values()):
            if server.batch_api:
                check_batch(server, config.inference)
            at_once = structs.replace(server, batch_api=False)
            inference = config.inference
            if config.forces_thinking:
                inference = structs.replace(inference, thinking_budget=None)
            check_inference(self.model(at_once, 1), inference, tools=bool(config.tool_modules))

    def context_strategy(self, config: GenerationConfig) -> ContextStrategy | None:
        """Return what to do about a request that is too long; None = nothing. Raises ConfigError (no tokenizer)."""
        server = config.server
        strategy = server.context_limit_retry_strategy
        if strategy is None:
            return None
        tokenizer = self._tokenizer(config, needed=strategy != "reduce_generation")

        def fit(request: Request, error: ContextLimitError) -> Request | None:
            try:
                return shorten_request(strategy, request, error, tokenizer, server.num_special_tokens_budget)
            except HttpError:  # the server cannot count tokens: its refusal stands
                return None

        return fit

    def grading(
        self, config: GenerationConfig, kit: Kit, on_broken: Callable[[WorkerStartError], None]
    ) -> Grading:
        """Return the grader of `config` at work: in worker processes, or with `kit` on the running loop. Raises
        ConfigError where something that it needs is not installed."""
        grader = make_grader(config.eval_type or "", config.eval_config)
        if isinstance(grader, NeedsCheck):
            grader.check()
        if is_executing(grader):
            return ExecutingGrading(grader, kit)
        target = {"name": config.eval_type, "config": config.eval_config}
        limits = PoolOptions(cpu_seconds=cpu_seconds(grader))
        pool = WorkerPool("newskills.graders.worker:make", target, result_type=Score, options=limits)
        return PoolGrading(pool, f"{grader.name}@{grader.version}", on_broken)

    def sandbox(self, config: SandboxConfig) -> Sandbox:
        """Make the sandbox of the settings without starting it. Raises ConfigError."""
        from newskills.sandbox.make import make_sandbox

        return make_sandbox(config, self.environ)

    def environments(self, config: EnvironmentConfig) -> AgentEnvironments:
        """Return the environments of `config`; nothing is started. Raises ConfigError where no engine is installed."""
        if config.engine == SESSIONS:
            from newskills.environments.sessions import SessionPool
            from newskills.sandbox.host import LocalSandbox

            settings = session_sandbox(config)
            return SessionPool(config, lambda folders: LocalSandbox(settings, self.environ, folders=folders))
        return make_environments(config, self.environ)

    def _tool_options(self, config: GenerationConfig) -> ToolOptions:
        """Return the options of the tools that `config` names. Raises ConfigError, UnknownNameError, FatalToolError (a
        tool that cannot be started)."""
        settings = tool_settings(config)
        return ToolOptions(
            specs=list_tools(settings, self.environ),
            max_calls=config.max_tool_calls,
            settings=msgspec.to_builtins(settings),
            dropped_parts=frozenset(config.drop_content_types),
        )

    def given_tokenizer(self, config: GenerationConfig) -> Tokenizer | None:
        """Return the tokenizer that the user names; None where that is left to the server. Raises ConfigError."""
        if config.tokenizer or config.server.tokenizer:
            return self._tokenizer(config, needed=True)
        return None

    def _tokenizer(self, config: GenerationConfig, *, needed: bool) -> Tokenizer | None:
        key = config.tokenizer, config.server.endpoint()
        if key not in self._tokenizers:
            try:
                self._tokenizers[key] = make_tokenizer(config.tokenizer, config.server, self.environ)
            except ConfigError:
                if needed or config.tokenizer or config.server.tokenizer:
                    raise
                return None
        return self._tokenizers[key]

    def _template_tokenizer(self, config: GenerationConfig) -> Tokenizer | None:
        """Return the tokenizer that renders prompts for the text endpoint; None for a model without a chat template.

        Raises ConfigError for arguments of a template that is not there.
        """
        tokenizer = self._tokenizer(config, needed=False)
        if tokenizer is not None:
            try:
                tokenizer.render([Message(role="user", content="x")], **config.chat_template_kwargs)
                return tokenizer
            except (ConfigError, BadRequestError) as error:
                why = str(error)
        else:
            why = f"No tokenizer is known for {config.server.model}, so there is no chat template."
            self.notes[
                f"{why} The text endpoint gets each prompt without a chat template (++tokenizer=NAME sets a "
                "tokenizer)."
            ] = None
        if config.chat_template_kwargs:
            raise ConfigError(
                f"++chat_template_kwargs cannot be used. {why}",
                hint="Set ++tokenizer=NAME, or leave them out.",
            )
        return None


def session_sandbox(config: EnvironmentConfig) -> SandboxConfig:
    """Return the settings of a separate sandbox for sessions that agents work in: their limits, and a turn for each."""
    limits = Limits(
        memory_mb=config.memory_mb,
        disk_mb=config.disk_mb or config.memory_mb,
        files=1 << 20,
        processes=config.processes,
        open_files=1024,
        timeout=LONGEST_COMMAND,
    )
    return SandboxConfig(
        network=config.network,
        preload=(),
        concurrency=config.at_once,
        max_sessions=2 * config.at_once,
        limits=limits,
    )


def prompt_overrides(config: GenerationConfig) -> PromptOverrides:
    """Return the part of the schema that changes prompts."""
    return PromptOverrides(
        prompt_format=config.prompt_format,
        system_message=config.system_message,
        user_message=config.user_message,
        examples_type=config.examples_type,
        few_shot_examples=config.few_shot_examples,
        code_tags=config.code_tags,
        prompt_suffix=config.prompt_suffix,
        start_assistant_response_key=config.start_assistant_response_key,
        chat_template_kwargs=config.chat_template_kwargs,
        data_dir=str(Path(config.input_file).parent),
        merge_system=config.server.merge_system,
        official_folders=official_folders(
            config.prompt_source, config.official_prompts or Path(config.input_file).parent / OFFICIAL
        ),
        official_required=config.prompt_source == "official",
    )


def chat_options(config: GenerationConfig) -> ChatSolverOptions:
    """Return the part of the schema that says how the answer is asked for and recorded."""
    extra: Row = {}
    if config.chat_template_kwargs and config.inference.endpoint_type != "text":
        extra["chat_template_kwargs"] = config.chat_template_kwargs
    inference = config.inference
    if inference.cache_prompt is None and config.solved_by == SOFTWARE_AGENT:
        inference = msgspec.structs.replace(inference, cache_prompt="auto")
    stop = (config.stop_phrase,) if config.stop_phrase else ()
    response_format = None
    if config.structured_output:
        response_format = RESPONSE_FORMATS[config.structured_output]
    pieces_of = (config.audio_chunk_task_types or ()) if config.enable_audio_chunking else ()
    return ChatSolverOptions(
        inference=inference,
        stop=stop,
        keep_stop=not config.remove_stop_phrases,
        generation_key=config.generation_key,
        parse_reasoning=config.parse_reasoning,
        end_reasoning=config.end_reasoning_string,
        timing=config.add_generation_stats,
        response_format=response_format,
        extra_body=extra,
        thinking=thinking_limits(config),
        pieces_of=pieces_of,
        piece_seconds=config.chunk_audio_threshold_sec,
    )


def thinking_limits(config: GenerationConfig) -> ThinkingLimits | None:
    """Return how the length of thinking is forced; None where the server limits it, or nobody."""
    if not config.forces_thinking:
        return None
    return ThinkingLimits(
        forcing=config.budget_forcing,
        budget=config.inference.thinking_budget,
        mark=config.end_reasoning_string,
    )


def code_options(config: GenerationConfig) -> CodeOptions | None:
    """Return the part of the schema that says how code in the answer is run. Raises UnknownNameError for the code
    tags."""
    if config.code_tags is None:
        return None
    tags = code_tags(config.code_tags)
    if config.code_execution:
        _check_code(config)
    stated = config.total_code_executions_in_prompt
    stated_range = (stated[0], stated[-1]) if isinstance(stated, tuple) else stated
    return CodeOptions(
        tags=tags,
        execution=config.server.code_execution,
        stated=stated_range,
        stated_is_limit=config.override_max_code_executions,
        seed=config.inference.random_seed or 0,
    )


def agent_options(config: GenerationConfig) -> AgentOptions | None:
    """Return the part of the schema that says which agent works, and where."""
    if config.agent is None:
        return None
    return AgentOptions(
        agent=config.agent,
        settings=config.agent_config,
        max_turns=config.agent_max_turns,
        environment=config.environment,
        prices=config.server.prices,
    )


def _check_sampling(config: GenerationConfig) -> None:
    """Refuse sampling at temperature 0, which draws the same answer again and again. Raises ConfigError."""
    greedy = config.inference.temperature == 0 and not is_reasoning_model(config.server.model or "")
    if greedy and config.solved_by != SC_TIR:
        raise ConfigError(
            "Several answers are sampled for each row, but at temperature 0 they are all the same.",
            hint="Set ++inference.temperature=0.7, or what the model's authors recommend.",
        )


def _check_code(config: GenerationConfig) -> None:
    """Refuse settings of code execution that would fail in every single sample. Raises ConfigError."""
    execution = config.server.code_execution
    try:
        language(execution.code_execution_language)
    except ExecutionRefusedError as error:
        raise ConfigError(f"++server.code_execution.code_execution_language: {error.message}") from error
    longest = config.sandbox.limits.timeout
    if execution.code_execution_timeout > longest:
        raise ConfigError(
            f"++server.code_execution.code_execution_timeout is {execution.code_execution_timeout:g} s, above "
            f"++sandbox.limits.timeout ({longest:g} s)."
        )


def grader_id(config: GenerationConfig) -> str:
    """Name, version and settings of the grader: other verdicts are to be expected when this changes.

    Raises UnknownNameError, ConfigError.
    """
    if config.eval_type is None:
        return ""
    return f"{grader_label(config)} {msgspec.json.encode(config.eval_config, order='deterministic').decode()}"


def grades_by_running(config: GenerationConfig) -> bool:
    """Return whether the grader needs the sandbox. Raises UnknownNameError, ConfigError."""
    if config.eval_type is None:
        return False
    return _grader_executes(config.eval_type, msgspec.json.encode(config.eval_config, order="deterministic"))


@cache
def _grader_executes(grader: str, settings: bytes) -> bool:
    """Return whether the grader needs the sandbox; cached, since most units have the same grader."""
    return needs_sandbox(make_grader(grader, msgspec.json.decode(settings)))


def grader_label(config: GenerationConfig) -> str:
    """Return the grader as `name@version`. Raises UnknownNameError, ConfigError."""
    grader = make_grader(config.eval_type or "", config.eval_config)
    return f"{grader.name}@{grader.version}"
