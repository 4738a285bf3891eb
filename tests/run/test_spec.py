# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run_and_listen, write_input
from tests.server import Answer, Fault, Script

from newskills.base.errors import ConfigError, DataError
from newskills.config.fields import leaves
from newskills.run.engine.execute import execute
from newskills.run.planning.config import ALIASES, DEPRECATED, GenerationConfig
from newskills.run.planning.spec import RunSpec, load_spec, mask_addresses


def test_every_key_says_what_it_means_and_aliases_lead_somewhere() -> None:
    known = leaves(GenerationConfig)
    assert [path for path, leaf in known.items() if not leaf.description] == []
    open_keys = {path for path, leaf in known.items() if leaf.open}
    assert [
        target
        for target in ALIASES.values()
        if target not in known and not any(target.startswith(f"{path}.") for path in open_keys)
    ] == []
    assert not set(ALIASES) & set(known)
    assert not set(DEPRECATED) & set(known)


def test_a_spec_survives_its_file(tmp_path: Path) -> None:
    unit = make_unit(tmp_path, "http://h:1/v1", seed=3, eval_type="math", eval_config={"take_modulo": 7})
    spec = RunSpec(units=(unit,), output_dir=str(tmp_path), resume_with="ns eval")
    assert spec.save(tmp_path) == {}
    assert load_spec(tmp_path) == spec


def test_no_secret_is_written(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(api_key="sk-secret", answer=Answer(kind="echo")))
    write_input(tmp_path, 2)
    units = tuple(
        make_unit(
            tmp_path, server.base_url, server={"api_key": "sk-secret"}, output_file=str(tmp_path / f"o{k}.jsonl")
        )
        for k in range(2)
    )
    environment = RunSpec(units=units, output_dir=str(tmp_path)).save(tmp_path)
    assert list(environment.values()) == ["sk-secret"]
    assert "sk-secret" not in (tmp_path / "run.json").read_text()
    command = [sys.executable, "-m", "newskills.run", str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert refused.returncode != 0
    assert next(iter(environment)) in refused.stderr
    done = subprocess.run(command, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0
    assert len(records(tmp_path / "o1.jsonl")) == 2
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"sk-secret" not in written


def test_the_command_line_is_not_kept_and_passwords_are_masked(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, message="see http://joe:pw-1@h/x"),)))
    write_input(tmp_path, 2)
    unit = make_unit(tmp_path, server.base_url)
    result, said = run_and_listen(unit, resume_with="ns generate ++server.api_key=sk-secret")
    assert (result.exit_code, "sk-secret" in result.message) == (1, True)
    state = unit.paths.state.read_text()
    assert "http://***@h/x" in state
    for text in ("sk-secret", "pw-1", "Resume with"):
        assert text not in state
    assert "pw-1" not in result.message + said
    named = make_unit(tmp_path, "http://joe:p@w@host/v1")
    RunSpec(units=(named,), output_dir="", resume_with="ns x ++server.base_url=http://joe:p@w@host/v1").save(
        tmp_path
    )
    assert (tmp_path / "run.json").read_text().count("http://***@host/v1") == 2
    assert mask_addresses("mail a@b.c at http://h/x?u=a@b") == "mail a@b.c at http://h/x?u=a@b"


def test_any_run_can_be_taken_up_from_its_folder(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, after=3),)))
    write_input(tmp_path, 6)
    monkeypatch.chdir(tmp_path)
    unit = make_unit(
        tmp_path,
        server.base_url,
        input_file="input.jsonl",
        output_file="out/output.jsonl",
        max_concurrent_requests=1,
    )
    spec = RunSpec(units=(unit,), output_dir="out", resume_with="ns generate …", log_dir="out/generation-logs")
    assert execute(spec, environ={}).exit_code == 1
    server.script = Script(answer=Answer(kind="echo"))
    monkeypatch.chdir("/")
    command = [sys.executable, "-m", "newskills.run", str(tmp_path / "out")]
    assert subprocess.run(command, timeout=300).returncode == 0
    assert len(records(tmp_path / "out" / "output.jsonl")) == 6
    log = (tmp_path / "out" / "generation-logs" / "run.log").read_text()
    assert [text in log for text in ("to do: generate", "failed: BadRequestError (provider, HTTP 400)")] == [
        True
    ] * 2
    assert "6 rows, 3 kept, 3 generated, 0 failed" in log
    assert log.count("ends with exit code") == 2
    assert "Resume with" not in log
    assert "What is" not in log
    text = (tmp_path / "out" / "run.json").read_text()
    (tmp_path / "out" / "run.json").write_text(text.replace(server.base_url, "http://127.0.0.1:9/v1"))
    gone = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert gone.returncode == 2
    assert "No server answers at http://127.0.0.1:9/v1" in gone.stderr
    assert "ns generate …" in gone.stderr


def test_bad_specs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no"):
        load_spec(tmp_path)
    (tmp_path / "run.json").write_text('{"units": [{"name": "x", "config": {"max_sample": 3}}], "output_dir": ""}')
    with pytest.raises(ConfigError, match="max_sample"):
        load_spec(tmp_path)


@pytest.mark.parametrize(
    "values",
    [
        {"num_chunks": 3},
        {"chunk_id": 0},
        {"num_chunks": 3, "chunk_id": 3},
        {"inference": {"endpoint_type": "text"}},
        {"max_samples": -2},
        {"prompt_format": "xml"},
        {"unknown": 1},
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(values, GenerationConfig)


def test_usage_of_the_module() -> None:
    done = subprocess.run([sys.executable, "-m", "newskills.run"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, "usage" in done.stderr) == (2, True)
