# SPDX-License-Identifier: Apache-2.0
"""Understanding in many languages, as choices.

Belebele (arXiv:2308.16884), XNLI (arXiv:1809.05053), PAWS-X (arXiv:1908.11828), XStoryCloze (arXiv:2112.10668),
Global PIQA (arXiv:2510.24081).
"""

from newskills.base.benchmark import Benchmark, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.reasoning.nli import THREE, nli_fields
from newskills.benchmarks.text import choices, yes_no

_BELEBELE = (
    "acm_Arab,afr_Latn,als_Latn,amh_Ethi,apc_Arab,arb_Arab,arb_Latn,ars_Arab,ary_Arab,arz_Arab,asm_Beng,azj_Latn,"
    "bam_Latn,ben_Beng,ben_Latn,bod_Tibt,bul_Cyrl,cat_Latn,ceb_Latn,ces_Latn,ckb_Arab,dan_Latn,deu_Latn,ell_Grek,"
    "eng_Latn,est_Latn,eus_Latn,fin_Latn,fra_Latn,fuv_Latn,gaz_Latn,grn_Latn,guj_Gujr,hat_Latn,hau_Latn,heb_Hebr,"
    "hin_Deva,hin_Latn,hrv_Latn,hun_Latn,hye_Armn,ibo_Latn,ilo_Latn,ind_Latn,isl_Latn,ita_Latn,jav_Latn,jpn_Jpan,"
    "kac_Latn,kan_Knda,kat_Geor,kaz_Cyrl,kea_Latn,khk_Cyrl,khm_Khmr,kin_Latn,kir_Cyrl,kor_Hang,lao_Laoo,lin_Latn,"
    "lit_Latn,lug_Latn,luo_Latn,lvs_Latn,mal_Mlym,mar_Deva,mkd_Cyrl,mlt_Latn,mri_Latn,mya_Mymr,nld_Latn,nob_Latn,"
    "npi_Deva,npi_Latn,nso_Latn,nya_Latn,ory_Orya,pan_Guru,pbt_Arab,pes_Arab,plt_Latn,pol_Latn,por_Latn,ron_Latn,"
    "rus_Cyrl,shn_Mymr,sin_Latn,sin_Sinh,slk_Latn,slv_Latn,sna_Latn,snd_Arab,som_Latn,sot_Latn,spa_Latn,srp_Cyrl,"
    "ssw_Latn,sun_Latn,swe_Latn,swh_Latn,tam_Taml,tel_Telu,tgk_Cyrl,tgl_Latn,tha_Thai,tir_Ethi,tsn_Latn,tso_Latn,"
    "tur_Latn,ukr_Cyrl,urd_Arab,urd_Latn,uzn_Latn,vie_Latn,war_Latn,wol_Latn,xho_Latn,yor_Latn,zho_Hans,zho_Hant,"
    "zsm_Latn,zul_Latn"
)
_PIQA = (
    "arb_arab,ben_beng,deu_latn,eng_latn,fra_latn,hin_deva,ita_latn,jpn_jpan,kor_hang,por_latn_braz,rus_cyrl,"
    "spa_latn_spai"
)


def belebele_row(raw: Row, index: int) -> Row:
    right = int(raw["correct_answer_num"])
    options = [raw[f"mc_answer{place}"] for place in range(1, 5)]
    return {
        **choices(f"{raw['flores_passage']}\n\n{raw['question']}", options),
        "expected_answer": "ABCD"[right - 1],
        "subset_for_metrics": str(raw.get("dialect") or raw["_config"]),
    }


def xnli_row(raw: Row, index: int) -> Row:
    fields = nli_fields(raw["premise"], raw["hypothesis"], THREE, int(raw["label"]))
    return {**fields, "subset_for_metrics": raw["_config"]}


def paws_row(raw: Row, index: int) -> Row:
    question = (
        f"Do these two sentences say the same?\n\nSentence 1: {raw['sentence1']}\nSentence 2: {raw['sentence2']}"
    )
    return {**yes_no(question, int(raw["label"]) == 1), "subset_for_metrics": raw["_config"]}


def storycloze_row(raw: Row, index: int) -> Row:
    story = " ".join(raw[f"input_sentence_{place}"] for place in range(1, 5))
    right = int(raw["answer_right_ending"])
    return {
        **choices(f"{story}\n\nHow does the story end?", [raw["sentence_quiz1"], raw["sentence_quiz2"]]),
        "expected_answer": {1: "A", 2: "B"}[right],
        "subset_for_metrics": raw["_config"],
    }


def piqa_row(raw: Row, index: int) -> Row:
    return {
        **choices(f"{raw['prompt']}\n\nWhich continuation is right?", [raw["solution0"], raw["solution1"]]),
        "question": raw["prompt"],
        "expected_answer": "AB"[int(raw["label"])],
        "subset_for_metrics": raw["language"],
    }


def _benchmark(
    name: str, title: str, source: Source, row: RowMapper, items: int, licence: str, paper: str
) -> Benchmark:
    prompts: dict[RowMapper, str] = {xnli_row: "generic/nli", paws_row: "generic/yes-no"}
    chances: dict[RowMapper, float] = {belebele_row: 0.25, xnli_row: 1 / 3}
    return Benchmark(
        name=name,
        category="multilingual",
        title=title,
        sources=(source,),
        row=row,
        options={
            "languages": sources_with(
                "config", "only these languages", *source.config.strip("{}").split(","), usual="all"
            )
        },
        prompt=prompts.get(row, "eval/aai/mcq-10choices"),
        grader="multichoice",
        metric="multichoice",
        split=source.split,
        items={source.split: items} if items else {},
        licence=licence,
        homepage=f"https://huggingface.co/datasets/{source.hf}",
        citation=paper,
        chance=chances.get(row, 0.5),
        unverified=True,
        traps=("The instruction is English for all languages; languages are the subsets of the table.",),
    )


BENCHMARKS = (
    _benchmark(
        "belebele",
        "Belebele: reading in 122 languages and scripts",
        Source(hf="facebook/belebele", config=f"{{{_BELEBELE}}}"),
        belebele_row,
        900 * 122,
        "CC-BY-SA-4.0",
        "arXiv:2308.16884",
    ),
    _benchmark(
        "xnli",
        "XNLI: what follows, in 15 languages",
        Source(hf="facebook/xnli", config="{ar,bg,de,el,en,es,fr,hi,ru,sw,th,tr,ur,vi,zh}"),
        xnli_row,
        15 * 5010,
        "CC-BY-NC-4.0",
        "arXiv:1809.05053",
    ),
    _benchmark(
        "paws-x",
        "PAWS-X: whether two sentences say the same, in seven languages",
        Source(hf="google-research-datasets/paws-x", config="{de,en,es,fr,ja,ko,zh}"),
        paws_row,
        7 * 2000,
        "free for any purpose",
        "arXiv:1908.11828",
    ),
    _benchmark(
        "xstorycloze",
        "XStoryCloze: endings of stories in eleven languages",
        Source(split="eval", hf="juletxara/xstory_cloze", config="{ar,en,es,eu,hi,id,my,ru,sw,te,zh}"),
        storycloze_row,
        11 * 1511,
        "CC-BY-SA-4.0",
        "arXiv:2112.10668",
    ),
    _benchmark(
        "global_piqa",
        "Global PIQA: everyday physics by people of many places",
        Source(hf="mrlbenchmarks/global-piqa-nonparallel", config=f"{{{_PIQA}}}"),
        piqa_row,
        0,
        "CC-BY-SA-4.0",
        "arXiv:2510.24081",
    ),
)
