# SPDX-License-Identifier: Apache-2.0
"""The 162 tasks of LegalBench, by the kind of legal reasoning (Guha et al. 2023, arXiv:2308.11462).

Tasks by kind: tasks.py of HazyResearch/legalbench (ce48244); score of each task: its evaluation.py; prompts: the
base_prompt.txt of each task, which are downloaded from there, and whose {{fields}} name those of the rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from newskills.base.benchmark import Benchmark, Group, Judge, Source
from newskills.base.records import Row
from newskills.benchmarks.scores import Metrics, headline, mean
from newskills.graders.reading.legal import LABEL, NAMES, plain_words

_TASKS = {
    "issue": """
        corporate_lobbying learned_hands_benefits learned_hands_business learned_hands_consumer
        learned_hands_courts learned_hands_crime learned_hands_divorce learned_hands_domestic_violence
        learned_hands_education learned_hands_employment learned_hands_estates learned_hands_family
        learned_hands_health learned_hands_housing learned_hands_immigration learned_hands_torts
        learned_hands_traffic
    """,
    "rule": """
        international_citizenship_questions nys_judicial_ethics citation_prediction_classification
        citation_prediction_open
    """,
    "conclusion": """
        abercrombie diversity_1 diversity_2 diversity_3 diversity_4 diversity_5 diversity_6 hearsay
        personal_jurisdiction successor_liability telemarketing_sales_rule ucc_v_common_law
    """,
    "interpretation": """
        consumer_contracts_qa contract_nli_confidentiality_of_agreement contract_nli_explicit_identification
        contract_nli_inclusion_of_verbally_conveyed_information contract_nli_limited_use contract_nli_no_licensing
        contract_nli_notice_on_compelled_disclosure contract_nli_permissible_acquirement_of_similar_information
        contract_nli_permissible_copy contract_nli_permissible_development_of_similar_information
        contract_nli_permissible_post-agreement_possession contract_nli_return_of_confidential_information
        contract_nli_sharing_with_employees contract_nli_sharing_with_third-parties
        contract_nli_survival_of_obligations contract_qa cuad_affiliate_license-licensee
        cuad_affiliate_license-licensor cuad_anti-assignment cuad_audit_rights cuad_cap_on_liability
        cuad_change_of_control cuad_competitive_restriction_exception cuad_covenant_not_to_sue cuad_effective_date
        cuad_exclusivity cuad_expiration_date cuad_governing_law cuad_insurance cuad_ip_ownership_assignment
        cuad_irrevocable_or_perpetual_license cuad_joint_ip_ownership cuad_license_grant cuad_liquidated_damages
        cuad_minimum_commitment cuad_most_favored_nation cuad_no-solicit_of_customers cuad_no-solicit_of_employees
        cuad_non-compete cuad_non-disparagement cuad_non-transferable_license
        cuad_notice_period_to_terminate_renewal cuad_post-termination_services cuad_price_restrictions
        cuad_renewal_term cuad_revenue-profit_sharing cuad_rofr-rofo-rofn cuad_source_code_escrow
        cuad_termination_for_convenience cuad_third_party_beneficiary cuad_uncapped_liability
        cuad_unlimited-all-you-can-eat-license cuad_volume_restriction cuad_warranty_duration
        insurance_policy_interpretation jcrew_blocker
        maud_ability_to_consummate_concept_is_subject_to_mae_carveouts
        maud_financial_point_of_view_is_the_sole_consideration
        maud_accuracy_of_fundamental_target_rws_bringdown_standard
        maud_accuracy_of_target_general_rw_bringdown_timing_answer
        maud_accuracy_of_target_capitalization_rw_(outstanding_shares)_bringdown_standard_answer
        maud_additional_matching_rights_period_for_modifications_(cor)
        maud_application_of_buyer_consent_requirement_(negative_interim_covenant)
        maud_buyer_consent_requirement_(ordinary_course)
        maud_change_in_law__subject_to_disproportionate_impact_modifier
        maud_changes_in_gaap_or_other_accounting_principles__subject_to_disproportionate_impact_modifier
        maud_cor_permitted_in_response_to_intervening_event
        maud_cor_permitted_with_board_fiduciary_determination_only maud_cor_standard_(intervening_event)
        maud_cor_standard_(superior_offer) maud_definition_contains_knowledge_requirement_-_answer
        maud_definition_includes_asset_deals maud_definition_includes_stock_deals
        maud_fiduciary_exception__board_determination_standard
        maud_fiduciary_exception_board_determination_trigger_(no_shop) maud_fls_(mae)_standard
        maud_general_economic_and_financial_conditions_subject_to_disproportionate_impact_modifier
        maud_includes_consistent_with_past_practice maud_initial_matching_rights_period_(cor)
        maud_initial_matching_rights_period_(ftr)
        maud_intervening_event_-_required_to_occur_after_signing_-_answer maud_knowledge_definition
        maud_liability_standard_for_no-shop_breach_by_target_non-do_representatives
        maud_ordinary_course_efforts_standard
        maud_pandemic_or_other_public_health_event__subject_to_disproportionate_impact_modifier
        maud_pandemic_or_other_public_health_event_specific_reference_to_pandemic-related_governmental_responses_or_measures
        maud_relational_language_(mae)_applies_to maud_specific_performance maud_tail_period_length
        maud_type_of_consideration opp115_data_retention opp115_data_security opp115_do_not_track
        opp115_first_party_collection_use opp115_international_and_specific_audiences opp115_policy_change
        opp115_third_party_sharing_collection opp115_user_access,_edit_and_deletion opp115_user_choice_control
        privacy_policy_entailment privacy_policy_qa proa ssla_company_defendants ssla_individual_defendants
        ssla_plaintiff sara_entailment sara_numeric supply_chain_disclosure_best_practice_accountability
        supply_chain_disclosure_best_practice_audits supply_chain_disclosure_best_practice_certification
        supply_chain_disclosure_best_practice_training supply_chain_disclosure_best_practice_verification
        supply_chain_disclosure_disclosed_accountability supply_chain_disclosure_disclosed_audits
        supply_chain_disclosure_disclosed_certification supply_chain_disclosure_disclosed_training
        supply_chain_disclosure_disclosed_verification unfair_tos
    """,
    "rhetoric": """
        canada_tax_court_outcomes definition_classification definition_extraction function_of_decision_section
        legal_reasoning_causality oral_argument_question_purpose overruling scalr textualism_tool_dictionaries
        textualism_tool_plain
    """,
}
"""Kind → tasks; `rule_qa`, which people are to grade, stands apart."""
_MEASURES = {
    "sara_numeric": "amount",
    "citation_prediction_open": "contains",
    "definition_extraction": "term",
    **dict.fromkeys(("ssla_company_defendants", "ssla_individual_defendants", "ssla_plaintiff"), NAMES),
}
_FIELD = re.compile(r"\{\{(.+?)\}\}")


def join_prompts(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of the tasks, each with the prompt of its task, which come first."""
    prompts: dict[str, str] = {}
    for row in raw:
        if "_config" in row:
            yield {**row, "_prompt": prompts[row["_config"]]}
        else:
            prompts[row["_file"].split("/")[1]] = row["text"]


def row(raw: Row, index: int) -> Row:
    task, answer = raw["_config"], str(raw["answer"])
    measure = _MEASURES.get(task, LABEL)
    return {
        "id": f"{task}-{raw['index']}",
        "question": _FIELD.sub(lambda field: str(raw[field[1]]), raw["_prompt"]).rstrip(),
        "expected_answer": answer,
        "measure": measure,
        "label": plain_words(answer) if measure == LABEL else "",
        "subset_for_metrics": task,
    }


def rule_row(raw: Row, index: int) -> Row:
    return {
        "id": f"rule_qa-{raw['index']}",
        "question": raw["text"],
        "problem": raw["text"],
        "expected_answer": raw["answer"],
        "subset_for_metrics": raw["doctrine"],
    }


def score(metrics: Mapping[str, Metrics]) -> Row:
    """Average each kind, and then the five kinds."""
    kinds = {name.rpartition(".")[2]: headline(modes, "task_mean") for name, modes in metrics.items()}
    return {"overall": mean(kinds.values()), **kinds}


_LICENCE = "by task; see the data set's page"
_PAGE = "https://huggingface.co/datasets/nguha/legalbench"
_PAPER = "arXiv:2308.11462"


_HEDGEABLE = {
    "rule": "in citation_prediction_open the right case may stand anywhere in a reply, as the authors score it",
    "rhetoric": "in definition_extraction one right term of all that a reply lists is enough, as the authors score it",
}


def _config_list(tasks: str) -> str:
    r"""Put tasks in braces; a comma within a name is written `\,`."""
    names = (task.replace(",", r"\,") for task in tasks.split())
    return f"{{{','.join(names)}}}"


def _benchmark(kind: str, tasks: str) -> Benchmark:
    return Benchmark(
        name=f"legalbench.{kind}",
        category="reasoning",
        title=f"LegalBench: {kind} ({len(tasks.split())} tasks)",
        sources=(
            Source(
                github="HazyResearch/legalbench",
                ref="main",
                members="tasks/*/base_prompt.txt",
                format="text",
                hf="nguha/legalbench",
                config=_config_list(tasks),
            ),
        ),
        join=join_prompts,
        row=row,
        prompt="eval/next-entry",
        grader="legalbench",
        metric="legalbench",
        licence=_LICENCE,
        homepage=_PAGE,
        citation=_PAPER,
        hedgeable=_HEDGEABLE.get(kind, ""),
        chance=0.5,
        unverified=True,
        traps=(
            "The authors' prompts, with their examples, are downloaded; a reply must be the answer alone.",
            "successor_liability is graded as a label: so does the authors' program, though it has an F1 for it.",
            "A right answer of several names (ssla) has an F1 below 100 by the authors' program, and so here.",
        ),
    )


BENCHMARKS = (
    *(_benchmark(kind, tasks) for kind, tasks in _TASKS.items()),
    Benchmark(
        name="legalbench.rule_qa",
        category="reasoning",
        title="LegalBench: rules in words",
        sources=(Source(hf="nguha/legalbench", config="rule_qa"),),
        row=rule_row,
        prompt="generic/default",
        grader="",
        judge=Judge(prompt="judge/general-judge"),
        metric="math",
        items={"test": 50},
        licence=_LICENCE,
        homepage=_PAGE,
        citation=_PAPER,
        unverified=True,
        traps=("People grade this task in the paper, a judge here: it is no part of the score of legalbench.",),
    ),
)

GROUP = Group(
    name="legalbench",
    category="reasoning",
    title="LegalBench: 161 tasks by kind of reasoning",
    members={f"legalbench.{kind}": {} for kind in _TASKS},
    score=score,
    homepage=_PAGE,
    citation=_PAPER,
    traps=(
        "Headline: the mean of each kind, as in the paper, and overall, the mean of the five. HELM's five tasks, as "
        "questions with options, are legalbench-five.",
        "rule_qa, the 162nd task, is graded by people, and is legalbench.rule_qa here, with a judge.",
    ),
)
