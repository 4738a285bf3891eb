# SPDX-License-Identifier: Apache-2.0
"""The `++` keys of `ns prepare_training_data`, and the recipes (`--config-name`): which keys, with which defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.prompts.official.table import PromptSource

RecipeName = Literal["math_sft", "stem_sft", "agent_sft", "code_sft", "math_rl"]
Output = Literal["sft", "conversation", "rl"]
CodeText = Literal["all", "majority_code", "majority_text", "any_code"]
Files = str | list[str]


def _doc(text: str) -> Meta:
    return Meta(description=text)


Length = Annotated[int, Meta(ge=0)]
Switch = bool


class MajorityConfig(Struct, frozen=True, kw_only=True):
    """How many votes an answer needs."""

    min_majority_votes: Annotated[Length, _doc("smallest number of votes for the answer")] = 0
    min_majority_percentage: Annotated[
        float, Meta(ge=0, le=1, description="smallest share (0–1) of all votes for the answer")
    ] = 0.0


class FilterSwitches(Struct, frozen=True, kw_only=True):
    """Which steps of the chain run."""

    drop_multi_boxed: Annotated[Switch, _doc("drop solutions with more than one \\boxed{…}")] = False
    remove_contaminated: Annotated[
        Switch, _doc("drop problems of contamination_file and --decontaminate (at least one of them is required)")
    ] = True
    remove_code_errors: Annotated[Switch, _doc("drop solutions that show tracebacks, timeouts or cut output")] = (
        False
    )
    remove_matplotlib: Annotated[Switch, _doc("drop solutions that plot")] = False
    remove_no_code: Annotated[Switch, _doc("drop solutions without <tool_call> and </tool_call>")] = False
    remove_no_think_tags: Annotated[
        Switch, _doc("drop solutions without reasoning that ended (</think>, [/THINK], …)")
    ] = False
    remove_verification_code: Annotated[
        Switch, _doc("drop solutions that announce a check or a plot with code")
    ] = False
    majority_filter: Annotated[Switch, _doc("drop answers with too few votes (majority_filter.*)")] = False
    trim_prefix: Annotated[Switch, _doc("remove the lead-in line `My solution:`")] = False
    trim_solutions: Annotated[Switch, _doc("cut the text after the line with the last \\boxed{…}")] = True
    drop_incorrect_arithmetic: Annotated[Switch, _doc("drop solutions with a wrong chain of arithmetic")] = False
    split_arithmetic: Annotated[
        Switch, _doc("rewrite correct chains of arithmetic with one operation per step")
    ] = False
    remove_len_outlier_problems: Annotated[
        Switch, _doc("drop problems outside the allowed length (needs tokenizer)")
    ] = True
    remove_len_outlier_solutions: Annotated[
        Switch, _doc("drop solutions outside the allowed length (needs tokenizer)")
    ] = False
    remove_len_outlier_inputs: Annotated[
        Switch, _doc("code_sft: drop rows whose input is outside the allowed length")
    ] = False
    remove_len_outlier_outputs: Annotated[
        Switch, _doc("code_sft: drop rows whose output is outside the allowed length")
    ] = False
    drop_incorrect_code_blocks: Annotated[Switch, _doc("code_sft: keep only outputs with one python block")] = (
        False
    )
    drop_none_answers: Annotated[Switch, _doc("math_rl: drop rows without an expected answer")] = True
    code_text_filter: Annotated[
        CodeText | None,
        _doc(
            "for each problem, keep either solutions with code or with text, whichever is more frequent "
            "(needs code_tags)"
        ),
    ] = None


class TrainingDataConfig(Struct, frozen=True, kw_only=True):
    """Defaults are those of math_sft; other recipes lay theirs over them."""

    output_path: Annotated[str, _doc("JSONL file to write; its data card is written beside it")] = ""
    input_files: Annotated[
        Files | None, _doc("graded generations: files or patterns, separated by commas or blanks")
    ] = None
    preprocessed_dataset_files: Annotated[
        Files | None, _doc("the same, for rows that need no verdict (ready-made data)")
    ] = None
    input_key: Annotated[str, Meta(min_length=1, description="field with the problem")] = "problem"
    output_key: Annotated[str | None, _doc("field with the solution (math_rl: none)")] = "generation"
    skip_first: Annotated[Length, _doc("number of first lines of each file to skip")] = 0
    add_correct: Annotated[bool, _doc("use correct solutions")] = True
    add_incorrect: Annotated[bool, _doc("use wrong solutions")] = False
    add_unlabeled: Annotated[bool, _doc("use solutions without a verdict")] = False
    use_judgement: Annotated[bool, _doc("use the judge's verdict instead of symbolic_correct")] = False
    deduplicate: Annotated[bool, _doc("of equal problems with equal solutions, keep only the first")] = True
    downsampling_method: Annotated[
        Literal["random", "fair"] | None,
        _doc("how num_output_samples are chosen; fair = in turn from each problem"),
    ] = None
    num_output_samples: Annotated[
        Annotated[int, Meta(ge=1)] | None, _doc("number of rows to write; null = all")
    ] = None
    random_seed: Annotated[int, _doc("random seed of order and choice")] = 42
    do_shuffle: Annotated[bool, _doc("false: keep problems in the order in which they first appear")] = True
    prompt_config: Annotated[
        str | None, _doc("prompt that wraps the problem; with a tokenizer, rows become text")
    ] = None
    prompt_source: Annotated[
        PromptSource | None,
        _doc("wording of prompts that are published: official, newskills; null = official where it is downloaded"),
    ] = None
    official_prompts: Annotated[str | None, _doc("folder with official prompts (default: in the data folder)")] = (
        None
    )
    tokenizer: Annotated[str | None, _doc("folder, tokenizer.json or name on the hub")] = None
    chat_template_kwargs: Annotated[Row | None, _doc("chat template variables")] = None
    prompt_format: Annotated[Literal["ns", "openai"], _doc("openai: the rows hold `messages`")] = "ns"
    system_message: Annotated[str | None, _doc("system message, instead of the prompt's own")] = None
    user_message: Annotated[str | None, _doc("user template, instead of the prompt's own")] = None
    examples_type: Annotated[str | None, _doc("few-shot set, instead of the prompt's own")] = None
    few_shot_examples: Annotated[Row, _doc("override keys of the prompt's few-shot section")] = {}
    prompt_suffix: Annotated[str | None, _doc("text to add to the end of the user message")] = None
    start_assistant_response_key: Annotated[str | None, _doc("field with the start of the assistant's answer")] = (
        None
    )
    assistant_end: Annotated[
        str | None, _doc("text that ends finished outputs, instead of the chat template's")
    ] = None
    code_tags: Annotated[str | None, _doc("how code is marked in solutions and examples")] = None
    min_problem_length: Annotated[Length, _doc("limit on the length of a problem in tokens")] = 0
    max_problem_length: Annotated[Length, _doc("limit on the length of a problem in tokens")] = 1024
    min_solution_length: Annotated[Length, _doc("limit on the length of a solution in tokens")] = 0
    max_solution_length: Annotated[Length, _doc("limit on the length of a solution in tokens")] = 2048
    min_input_length: Annotated[Length, _doc("code_sft: limit on the length of an input in tokens")] = 0
    max_input_length: Annotated[Length, _doc("code_sft: limit on the length of an input in tokens")] = 1024
    min_output_length: Annotated[Length, _doc("code_sft: limit on the length of an output in tokens")] = 0
    max_output_length: Annotated[Length, _doc("code_sft: limit on the length of an output in tokens")] = 2048
    use_chars_for_min_length: Annotated[bool, _doc("the smallest lengths count characters")] = False
    majority_filter: MajorityConfig = MajorityConfig()
    contamination_file: Annotated[
        str | None, _doc("JSONL file of ns generate --generation_type=check_contamination")
    ] = None
    exclude_optional_keys: Annotated[bool, _doc("write only the fields that training needs")] = True
    metadata: Annotated[Row | None, _doc("fields to add to each row")] = None
    add_code_execution_counts: Annotated[
        bool, _doc("add total_code_executions (needs exclude_optional_keys=false to be written)")
    ] = False
    filters: FilterSwitches = FilterSwitches()

    @property
    def asks(self) -> bool:
        """Whether rows become what a model reads."""
        return self.prompt_config is not None or self.user_message is not None or self.prompt_format == "openai"


class DataRecipe(Struct, frozen=True, kw_only=True):
    """`lacks`: keys (or their common beginning, ending in `_`) that it does not have; `kept`: fields of a row that
    it keeps, None = all."""

    name: RecipeName
    output: Output
    defaults: Mapping[str, Any] = {}
    lacks: tuple[str, ...] = ()
    kept: frozenset[str] | None = None


_CODE_ONLY = (
    "min_input_length",
    "max_input_length",
    "min_output_length",
    "max_output_length",
    "filters.remove_len_outlier_inputs",
    "filters.remove_len_outlier_outputs",
    "filters.drop_incorrect_code_blocks",
)
_RL_ONLY = ("filters.drop_none_answers",)
_SOLUTIONS = frozenset(
    {
        "total_votes",
        "majority_votes",
        "expected_answer",
        "predicted_answer",
        "answer_rm_score",
        "solutions",
        "num_solutions",
        "max_idx",
        "reasoning_content",
        "finish_reason",
    }
)
_CONVERSATION = frozenset({"serialized_output", "tools", "prompt_messages"})
_ANSWERS = frozenset({"expected_answer", "total_votes", "majority_votes", "category"})
_NO_SOLUTIONS = {
    "output_key": None,
    "filters.trim_solutions": False,
    "filters.drop_none_answers": True,
}

RECIPES: Mapping[str, DataRecipe] = {
    recipe.name: recipe
    for recipe in (
        DataRecipe(name="math_sft", output="sft", lacks=(*_CODE_ONLY, *_RL_ONLY), kept=_SOLUTIONS),
        DataRecipe(
            name="stem_sft",
            output="conversation",
            lacks=(*_CODE_ONLY, *_RL_ONLY),
            kept=_SOLUTIONS | _CONVERSATION,
        ),
        DataRecipe(
            name="agent_sft",
            output="conversation",
            defaults={
                "input_key": "id",
                "deduplicate": False,
                "filters.remove_contaminated": False,
                "filters.trim_solutions": False,
                "filters.remove_len_outlier_problems": False,
            },
            lacks=(*_CODE_ONLY, *_RL_ONLY),
            kept=_SOLUTIONS | {"conversation", "tools"},
        ),
        DataRecipe(
            name="code_sft",
            output="sft",
            defaults={
                "input_key": "input",
                "output_key": "output",
                "add_incorrect": True,
                "add_unlabeled": True,
                "filters.remove_contaminated": False,
                "filters.trim_solutions": False,
                "filters.remove_len_outlier_problems": False,
            },
            lacks=(
                "use_judgement",
                "downsampling_method",
                "num_output_samples",
                "contamination_file",
                "add_code_execution_counts",
                "majority_filter_",
                "min_problem_length",
                "max_problem_length",
                "min_solution_length",
                "max_solution_length",
                *(
                    f"filters.{name}"
                    for name in FilterSwitches.__struct_fields__
                    if f"filters.{name}" not in _CODE_ONLY
                ),
            ),
        ),
        DataRecipe(
            name="math_rl",
            output="rl",
            defaults={"downsampling_method": "random", **_NO_SOLUTIONS},
            lacks=(
                *_CODE_ONLY,
                "output_key",
                "add_",
                "use_judgement",
                "assistant_end",
                "min_solution_length",
                "max_solution_length",
                *(
                    f"filters.{name}"
                    for name in FilterSwitches.__struct_fields__
                    if name
                    not in (
                        "remove_contaminated",
                        "majority_filter",
                        "remove_len_outlier_problems",
                        "drop_none_answers",
                    )
                ),
            ),
            kept=_ANSWERS,
        ),
    )
}


def check_keys(recipe: DataRecipe, keys_given: Sequence[str]) -> None:
    """Raise ConfigError for a key that the recipe does not have."""
    for key in keys_given:
        path = key.replace("-", "_")
        flat = path.replace(".", "_")
        if any(path == word or (word.endswith("_") and f"{flat}_".startswith(word)) for word in recipe.lacks):
            others = [name for name, other in RECIPES.items() if path not in other.lacks and name != recipe.name]
            raise ConfigError(
                f"++{key}: {recipe.name} has no such step or setting.",
                hint=f"It belongs to --config-name={'|'.join(others)}." if others else "",
            )


def check_settings(config: TrainingDataConfig, recipe: DataRecipe, *, decontaminated: bool) -> None:
    """Raise ConfigError for what does not fit together. `decontaminated`: benchmarks were named to compare with."""
    if not config.output_path:
        raise ConfigError("No output file is given. Give ++output_path=FILE.jsonl.")
    if recipe.output != "rl" and not (config.add_correct or config.add_incorrect or config.add_unlabeled):
        raise ConfigError("add_correct, add_incorrect and add_unlabeled are all false: no rows would be left.")
    if config.num_output_samples is not None and config.downsampling_method is None:
        raise ConfigError("num_output_samples needs a way to choose: add ++downsampling_method=random (or fair).")
    if config.downsampling_method is not None and config.num_output_samples is None and recipe.output != "rl":
        raise ConfigError(f"downsampling_method={config.downsampling_method} needs ++num_output_samples=N.")
    _check_filters(config, decontaminated=decontaminated)
    _check_prompt(config, recipe)


def _check_filters(config: TrainingDataConfig, *, decontaminated: bool) -> None:
    """Raise ConfigError for a step that lacks what it needs."""
    filters = config.filters
    if filters.remove_contaminated and config.contamination_file is None and not decontaminated:
        raise ConfigError(
            "filters.remove_contaminated has nothing to compare with.",
            hint="Give --decontaminate=BENCHMARK, or ++contamination_file=FILE (from ns generate "
            "--generation_type=check_contamination), or switch the filter off: "
            "++filters.remove_contaminated=false.",
        )
    by_length = [
        name for name in filters.__struct_fields__ if name.startswith("remove_len") and getattr(filters, name)
    ]
    if by_length and config.tokenizer is None:
        raise ConfigError(
            f"filters.{by_length[0]} counts tokens, but no tokenizer is given.",
            hint=f"Give ++tokenizer=NAME, or switch the filter off: ++filters.{by_length[0]}=false.",
        )
    if filters.code_text_filter is not None and config.code_tags is None:
        raise ConfigError("filters.code_text_filter searches for code: set how it is marked, ++code_tags=NAME.")
    if config.add_code_execution_counts and config.exclude_optional_keys:
        raise ConfigError(
            "add_code_execution_counts adds an optional field, but exclude_optional_keys drops such fields.",
            hint="Add ++exclude_optional_keys=false.",
        )


def _check_prompt(config: TrainingDataConfig, recipe: DataRecipe) -> None:
    """Raise ConfigError for a prompt without its template, and for what has no effect without a prompt."""
    if config.asks:
        if recipe.output != "conversation" and config.tokenizer is None:
            raise ConfigError(
                "prompt_config writes model input, which needs the model's chat template.",
                hint="Give ++tokenizer=NAME, or leave out prompt_config to write the plain fields.",
            )
        return
    for name in ("system_message", "assistant_end", "chat_template_kwargs", "examples_type", "prompt_suffix"):
        if getattr(config, name) is not None:
            raise ConfigError(f"{name} has no effect without ++prompt_config=NAME.")
