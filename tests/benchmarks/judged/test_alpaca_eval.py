# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

from newskills.benchmarks.chat_judge import alpaca_eval


def test_instructions_get_the_games_of_the_baseline_with_itself() -> None:
    answer = {"instruction": "Hi.", "output": "Hello.", "generator": "gpt4_1106_preview", "dataset": "koala"}
    games = (
        "model,index,instruction_difficulty,not_gamed_baseline,preference,std_delta_len\n"
        "verbose,0,-0.5,False,0.7,-1.25\n"
        "verbose,1,0.25,False,0.5,0\n"
        "concise,0,-0.5,False,,0.75\n"
    )
    files = [
        {"text": json.dumps([answer, answer]), "_file": "alpaca_eval_gpt4_baseline.json"},
        {"text": games, "_file": "df_gamed.csv"},
    ]
    first, second = (
        alpaca_eval.row(raw, index) for index, raw in enumerate(alpaca_eval.join_baseline_games(files))
    )
    assert first["baseline_answer"] == "Hello."
    assert (first["instruction_difficulty"], first["gamed_games"]) == (-0.5, [[0.7, -1.25]])
    assert (second["instruction_difficulty"], second["gamed_games"]) == (0.25, [[0.5, 0.0]])
