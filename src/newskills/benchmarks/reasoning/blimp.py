# SPDX-License-Identifier: Apache-2.0
"""67 minimal pairs of English grammar: the sentence that is right has to be the likelier (Warstadt et al. 2020).

As in the paper's simple method, and in lm-evaluation-harness (4e7e0d4): whole sentences are compared, and each paradigm
has 1,000 pairs.
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_PARADIGMS = (
    "adjunct_island,anaphor_gender_agreement,anaphor_number_agreement,animate_subject_passive,"
    "animate_subject_trans,causative,complex_NP_island,coordinate_structure_constraint_complex_left_branch,"
    "coordinate_structure_constraint_object_extraction,determiner_noun_agreement_1,determiner_noun_agreement_2,"
    "determiner_noun_agreement_irregular_1,determiner_noun_agreement_irregular_2,"
    "determiner_noun_agreement_with_adj_2,determiner_noun_agreement_with_adj_irregular_1,"
    "determiner_noun_agreement_with_adj_irregular_2,determiner_noun_agreement_with_adjective_1,"
    "distractor_agreement_relational_noun,distractor_agreement_relative_clause,drop_argument,ellipsis_n_bar_1,"
    "ellipsis_n_bar_2,existential_there_object_raising,existential_there_quantifiers_1,"
    "existential_there_quantifiers_2,existential_there_subject_raising,expletive_it_object_raising,inchoative,"
    "intransitive,irregular_past_participle_adjectives,irregular_past_participle_verbs,"
    "irregular_plural_subject_verb_agreement_1,irregular_plural_subject_verb_agreement_2,"
    "left_branch_island_echo_question,left_branch_island_simple_question,matrix_question_npi_licensor_present,"
    "npi_present_1,npi_present_2,only_npi_licensor_present,only_npi_scope,passive_1,passive_2,"
    "principle_A_c_command,principle_A_case_1,principle_A_case_2,principle_A_domain_1,principle_A_domain_2,"
    "principle_A_domain_3,principle_A_reconstruction,regular_plural_subject_verb_agreement_1,"
    "regular_plural_subject_verb_agreement_2,sentential_negation_npi_licensor_present,"
    "sentential_negation_npi_scope,sentential_subject_island,superlative_quantifiers_1,"
    "superlative_quantifiers_2,tough_vs_raising_1,tough_vs_raising_2,transitive,wh_island,"
    "wh_questions_object_gap,wh_questions_subject_gap,wh_questions_subject_gap_long_distance,"
    "wh_vs_that_no_gap,wh_vs_that_no_gap_long_distance,wh_vs_that_with_gap,wh_vs_that_with_gap_long_distance"
)


def row(raw: Row, index: int) -> Row:
    """Return a row in which the right sentence is not always the first."""
    right = int(raw["pairID"]) % 2
    sentences = [raw["sentence_good"], raw["sentence_bad"]]
    return {
        "id": f"{raw['UID']}-{raw['pairID']}",
        "context": "",
        "continuations": sentences[::-1] if right else sentences,
        "expected_answer": "AB"[right],
        "field": raw["field"],
        "paradigm": raw["UID"],
        "subset_for_metrics": [raw["linguistics_term"], raw["UID"]],
    }


BENCHMARK = Benchmark(
    name="blimp",
    category="reasoning",
    title="BLiMP: 67 minimal pairs of English grammar, by likelihood",
    sources=(
        Source(
            url=f"https://raw.githubusercontent.com/alexwarstadt/blimp/master/data/{{{_PARADIGMS}}}.jsonl",
            revision="3e56b06fcabca9b30822fc66435fca6b1aa40bb1",
            sha256="e71b74c9a1a293048ec3f300acb088151caf5b2b16b0fa9b192edfcb91d94221",
        ),
    ),
    row=row,
    prompt="generic/continuation",
    solver="loglikelihood",
    grader="loglikelihood",
    metric="loglikelihood",
    items={"test": 67000},
    licence="CC-BY-4.0",
    homepage="https://github.com/alexwarstadt/blimp",
    citation="arXiv:1912.00582",
    chance=0.5,
    traps=(
        "Needs a completions endpoint that echoes log-probabilities (vLLM, SGLang); llama.cpp does not.",
        "acc compares whole sentences; it is the mean of the paradigms, too, which have 1,000 pairs each.",
    ),
)
