# SPDX-License-Identifier: Apache-2.0
"""Which figure of a benchmark is its headline, and what it says, in one line."""

from __future__ import annotations

from newskills.base.benchmark import Benchmark

_TESTS = "share of programs that pass all tests"
_JUDGED = "share of answers that the judge accepts"
_RULED = "share of answers that the grader finds equal to the right one"
_CHOSEN = "share of questions with the right option"
_ACCEPTED = "share of answers that the grader accepts"
_WER = "word error rate, errors of all samples over words of all references; lower is better"
HEADLINES: dict[str, tuple[str, str]] = {
    "math": ("symbolic_correct", _RULED),
    "multichoice": ("symbolic_correct", _CHOSEN),
    "math_multilingual": ("symbolic_correct", _RULED),
    "multichoice_multilingual": ("symbolic_correct", _CHOSEN),
    "physics": ("judge_correct", _JUDGED),
    "ugphysics": ("judge_correct", _JUDGED),
    "weighted-math": ("weighted_symbolic_correct", "share of right answers, weighted by the level of the problem"),
    "hle": ("judge_correct", _JUDGED),
    "hle-aa": ("judge_correct", _JUDGED),
    "frontierscience-olympiad": ("judge_correct", _JUDGED),
    "aalcr": ("judge_correct", _JUDGED),
    "generic": ("accuracy", _ACCEPTED),
    "lm_eval": ("the first metric of the task", "as its task file says"),
    "arc": (
        "arc_score",
        "mean over tasks of the share of grids that some attempt has right; pass@2: two attempts",
    ),
    "bfcl": ("accuracy", "share of samples with the right calls, or none where none helps"),
    "critpt": (
        "accuracy",
        "share of right functions, which only the service of its makers tells (ns critpt submit)",
    ),
    "evalplus": ("passing_base_tests", "share of programs that pass the original tests"),
    **dict.fromkeys(
        (
            *("code_tests", "livecodebench", "livecodebench_pro", "livebench_coding", "bigcodebench"),
            *("human_eval_infilling", "compute-eval"),
        ),
        ("accuracy", _TESTS),
    ),
    "classeval": (
        "class_success",
        "share of classes whose tests all pass; `method_success`, the same of test classes",
    ),
    "scicode": (
        "problem_accuracy",
        "share of problems with all steps right; `subtask_accuracy`, the share of steps",
    ),
    "bird": ("total_acc", "share of queries with the result of the right query"),
    "ioi": ("total_score", "points of all problems, each subtask by the best answer"),
    "icpc": ("solved", "problems with an answer that passes all tests"),
    "ccc": ("average_score", "mean points of an answer; `best_score`, those of the best answers"),
    "terminal-bench": ("tasks_resolved", "share of tasks whose own tests pass"),
    "swe-bench": ("issues_resolved", "share of issues whose tests pass with the patch"),
    "lean4-proof": ("lean4_correct", "share of proofs that Lean accepts"),
    "lean4-statement": ("lean4_correct", "share of statements that Lean accepts"),
    "if": ("prompt_strict_accuracy", "share of prompts of which every instruction is followed, read strictly"),
    "followbench": ("hsr", "hard satisfaction rate, mean over levels and kinds; beside it `ssr` (soft) and `csl`"),
    "arena": ("score", "chance to beat the baseline, by Bradley and Terry's model of all games"),
    "alpaca_eval": ("length_controlled_winrate", "share of answers preferred to GPT-4 Turbo's at equal lengths"),
    "mt-bench": ("rating", "mean mark of the judge, 1 to 10, over all turns"),
    "rating": ("rating", "mean mark of the judge, 1 to 10"),
    "wildbench": (
        "wb_score",
        "mean mark of the judge, 1 to 10, stretched: 20 · (mark − 5); `wb_task_score`, weighted by kind of task",
    ),
    "eq_bench": (
        "eq_bench_score",
        "100 less the distance from the authors' intensities, over replies that can be read",
    ),
    "answer-judgement": ("correct_judgements", "share of judgements that agree with people"),
    "gradingbench": ("exact_accuracy", "share of marks that are those of people"),
    "simpleqa": ("correct", "share of questions answered right; `f1` takes refusals to answer into account"),
    "omniscience": ("judge_omni_index", "share of right less share of wrong answers"),
    "refusal": ("refusal_rate", "share of requests refused, of those that should be"),
    "strongreject": ("strongreject_score", "mean harm of the replies, 0 to 100; lower is safer"),
    "bbq": ("accuracy", "share of right options; the two biases stand beside it"),
    "hotpotqa": ("joint_f1", "F1 of answer and supporting facts together"),
    "hotpotqa_closedbook": ("answer_f1", "F1 of the answer's words"),
    "short_answer": ("f1", "F1 of the answer's words; `em`, the share of equal answers"),
    "short_answer_sections": (
        "macro_f1",
        "mean over sections of the F1 of the answer's words; `macro_em`, of equal answers",
    ),
    "translation": ("bleu", "corpus BLEU of each pair of languages"),
    "ruler": ("accuracy", "mean share of the wanted texts in the reply"),
    "ruler2": ("accuracy", "mean share of the wanted texts in the reply"),
    "mrcr": ("accuracy", "mean likeness of reply and wanted text (difflib's ratio)"),
    "graphwalks": ("f1", "mean F1 of the sets of nodes"),
    "long_text": ("task_mean", "mean over tasks of each task's own measure"),
    "longfact": ("f1_at_64", "mean F1 of supported claims, of which 64 are enough"),
    "loglikelihood": (
        "acc",
        "share of questions whose right continuation is the likeliest; `acc_norm`, by length",
    ),
    "perplexity": (
        "bits_per_byte",
        "bits per byte of all texts together; beside it perplexity by byte and by word",
    ),
    **dict.fromkeys(("audio", "contextasr", "contextual_earnings22"), ("wer", _WER)),
    "mmau_pro_closed_form": ("success_rate", _CHOSEN),
    "mmau_pro_instruction_following": ("success_rate", "share of replies that follow the instruction"),
    "mmau_pro_open_ended": ("avg_overall", "mean mark of the judge, in percent of five points"),
    "yes_no": ("f1", "F1 of the answer yes; beside it accuracy and the share of yes"),
    "specdec": (
        "spec_acceptance_length",
        "tokens for each step of the model, drafted ones that it accepts included",
    ),
    "balanced": (
        "balanced_accuracy",
        "mean over sections of the mean over right answers of the share that is found",
    ),
    "hallusionbench": (
        "pair_accuracy",
        "share of questions answered right with every figure; `figure_accuracy`, of figures with every question right",
    ),
    "circular": ("circular_accuracy", "share of questions answered right in every order of the options"),
    "legalbench": (
        "task_mean",
        "mean over tasks of their own figure: balanced accuracy, of extracted names F1, else accuracy",
    ),
    "livebench": ("accuracy", "mean over categories of the mean over their tasks, as the leaderboard"),
    "logic_grid": (
        "puzzle_accuracy",
        "share of puzzles with every cell right; `cell_accuracy`, the share of cells",
    ),
    "macro": ("macro_accuracy", "mean over sections of the share of right answers"),
    "multi-if": ("average_accuracy", "mean over three turns of the mean of IFEval's four accuracies"),
    "processbench": ("f1", "harmonic mean of the accuracies on wrong and on right solutions, mean over sources"),
    "rewardbench": ("score", "mean over four sections of the share of pairs in the right order"),
    "rewardbench2": ("macro_accuracy", "mean over subsets of the share of questions whose best answer is chosen"),
    "rewardbench2-ties": ("ties_score", "how far marks keep right answers together and above wrong ones"),
    "rubric": ("score", "points of the criteria that are met, of all that there are, cut to 0 to 100"),
    "document": (
        "overall_edit",
        "mean of the edit distances of texts, formulas, tables and reading order, of 100; lower is better; "
        "`table_teds`, likeness of tables",
    ),
    "agentharm": (
        "harm_score",
        "mean share of each task's criteria that the agent meets, lower is safer (of harmful tasks); beside it "
        "`refusal_rate`",
    ),
    "agentdojo": (
        "utility_under_attack",
        "share of tasks done in spite of an attack; `attack_success`, of attacks that reach their aim; `utility`, "
        "of tasks done without one",
    ),
    "tau2": ("reward", "share of tasks that end in the wanted state, with the wanted facts told"),
}
"""Metric → headline and what it says."""
_WITH_JUDGE = {"symbolic_correct": ("judge_correct", _JUDGED)}


def headline_definition(benchmark: Benchmark) -> str:
    """Return the headline's name and what it says: the benchmark's own words, else those of its metric; empty for
    a metric of a plug-in."""
    if benchmark.headline:
        return benchmark.headline
    if benchmark.metric not in HEADLINES:
        return ""
    figure, meaning = HEADLINES[benchmark.metric]
    if benchmark.judge is not None:
        figure, meaning = _WITH_JUDGE.get(figure, (figure, meaning))
    return f"`{figure}`: {meaning}"
