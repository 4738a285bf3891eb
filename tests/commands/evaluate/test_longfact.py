# SPDX-License-Identifier: Apache-2.0
"""Long answers, taken apart and looked up: the model, the judge and the search API are servers of the test."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.commands.running import ns, rows_of, write
from tests.server import Answer, FakeServer, Script

ANSWERS = {
    "Tell me about Rome.": "Rome is in Italy. It was founded in 1950. I like it. Its anthem is odd.",
    "Tell me about Oslo.": "Oslo is in Norway.",
    "Tell me about Bern.": "I would rather not.",
    "Tell me about Riga.": "Riga is where?",
}
CLAIMS = {
    "It was founded in 1950.": "- Rome is in Italy.\n- Rome was founded in 1950.\n- Pizza is flat.",
    "Oslo is in Norway.": "1. Oslo is in Norway.",
    "I would rather not.": "NONE",
    "Riga is where?": "I cannot do this.",
}
PAGES = {"Rome Italy": "Rome is the capital of Italy.", "Rome founded": "Rome was founded in 753 BC."}


def judged(body: dict[str, Any]) -> str:
    """Looks once for each claim about Rome, and reads what was found."""
    asked = body["messages"][-1]["content"]
    if "Take the answer apart" in asked:
        return next(claims for key, claims in CLAIMS.items() if key in asked)
    claim = asked.partition("Claim:\n")[2].partition("\n")[0]
    if claim == "Pizza is flat.":
        return "This is beside the point.\nVerdict: IRRELEVANT"
    if "Oslo" in claim:
        return "Let me see.\nSearch: Oslo"
    if "(nothing yet)" in asked:
        return f"**Search:** Rome {'Italy' if 'Italy' in claim else 'founded'}"
    return f"Verdict: {'SUPPORTED' if 'capital of Italy' in asked else 'NOT SUPPORTED'}"


class Search(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]]
    status = 200

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["content-length"])))["query"]
        self.asked.append(query)
        hits = [{"url": "https://a.example", "title": "A", "content": PAGES[query]}] if query in PAGES else []
        body = json.dumps({"results": hits}).encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # a client that does not wait
            self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def search() -> Iterator[tuple[Any, str]]:
    made = type("Made", (Search,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), made)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made, f"http://127.0.0.1:{server.server_port}/search"
    server.shutdown()
    server.server_close()


@pytest.fixture
def servers() -> Iterator[tuple[FakeServer, FakeServer]]:
    answering = FakeServer(Script(answer=Answer(kind="table", table=ANSWERS, template="%s")))
    judge = FakeServer(Script(), answer=judged)
    yield answering, judge
    answering.stop()
    judge.stop()


def line(servers: tuple[FakeServer, FakeServer], endpoint: str, *options: str) -> list[str]:
    answering, judge = servers
    extra = (
        f"++tool_overrides.TavilySearchTool.endpoint={endpoint} ++tool_overrides.TavilySearchTool.max_retries=0"
    )
    return [
        f"ns eval --benchmarks=longfact --server_type=vllm --model=fake --server_address={answering.base_url} "
        f"--judge_server_type=vllm --judge_model=judge --judge_server_address={judge.base_url} --output_dir=out "
        f"--data_dir=data --extra_judge_args='{extra} ++solver_config.max_searches=2'",
        *options,
    ]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    rows = [
        {"id": f"q{n}", "question": question, "topic": "t", "subset_for_metrics": "objects"}
        for n, question in enumerate(ANSWERS)
    ]
    write(tmp_path / "data/longfact/test.jsonl", rows)
    return tmp_path


def test_claims_are_told_looked_up_and_counted(
    here: Path, servers: tuple[FakeServer, FakeServer], search: tuple[Any, str]
) -> None:
    asked, endpoint = search
    done = ns(*line(servers, endpoint, "--accept_lost=60"), cwd=here, env={"TAVILY_API_KEY": "k"})
    assert done.returncode == 0, done.stderr
    rome, oslo, bern, riga = rows_of(here / "out/eval-results/longfact/output.jsonl")
    assert [(row["claim"], row["verdict"], row["searches"]) for row in rome["claims"]] == [
        ("Rome is in Italy.", "supported", ["Rome Italy"]),
        ("Rome was founded in 1950.", "not_supported", ["Rome founded"]),
        ("Pizza is flat.", "irrelevant", []),
    ]
    assert rome["judgement"] == "1 supported, 1 not supported, 1 irrelevant, 0 unrated"
    assert (rome["outcome"], rome["precision"]) == ("wrong", 0.5)
    assert rome["f1_at_64"] == pytest.approx(2 * 0.5 / 64 / (0.5 + 1 / 64))
    # the judge never came to a verdict, and could not tell the claims: nothing is said about these answers
    assert (oslo["outcome"], oslo["outcome_cause"], oslo["num_unrated"]) == ("unscored", "judge", 1)
    assert oslo["claims"][0]["searches"] == ["Oslo", "Oslo"]
    assert (riga["outcome"], riga["outcome_cause"], riga["claims"]) == ("unscored", "judge", None)
    assert (bern["outcome"], bern["f1_at_64"], bern["claims"]) == ("wrong", 0.0, [])
    assert sorted(asked.asked) == ["Oslo", "Oslo", "Rome Italy", "Rome founded"]
    metrics = json.loads((here / "out/eval-results/longfact/metrics.json").read_text())["longfact"]["pass@1"]
    assert metrics["precision"] == pytest.approx(25.0)
    assert metrics["unscored"] == pytest.approx(50.0)


def test_a_search_that_fails_says_nothing_about_the_answer(
    here: Path, servers: tuple[FakeServer, FakeServer], search: tuple[Any, str]
) -> None:
    made, endpoint = search
    made.status = 500
    done = ns(*line(servers, endpoint), cwd=here, env={"TAVILY_API_KEY": "k"})
    assert done.returncode == 1
    rome, *_ = rows_of(here / "out/eval-results/longfact/output.jsonl")
    assert rome["outcome"] == "unscored"
    assert rome["outcome_cause"] != "model"
    assert "The search API gave no answer" in rome["judge_detailed_error"]


def test_without_a_key_nothing_is_begun(
    here: Path, servers: tuple[FakeServer, FakeServer], search: tuple[Any, str]
) -> None:
    done = ns(*line(servers, search[1]), cwd=here, env={"TAVILY_API_KEY": ""})
    assert done.returncode != 0
    assert "TAVILY_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    assert servers[0].records == []


def test_another_kind_of_judge_does_not_take_its_place(
    here: Path, servers: tuple[FakeServer, FakeServer], search: tuple[Any, str]
) -> None:
    done = ns(*line(servers, search[1], "--judge_type=llm", "--dry_run"), cwd=here, env={"TAVILY_API_KEY": "k"})
    assert done.returncode == 0, done.stderr
    done = ns(*line(servers, search[1], "--judge_type=llm", "--explain"), cwd=here, env={"TAVILY_API_KEY": "k"})
    assert "claims_judge" in done.stdout
