# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.plan import Ref, Script
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.scripts.clients import EvalScript, GenerationClientScript, SummarizeScript
from newskills.launch.scripts.script import BaseJobScript, Context, SandboxScript, ServerScript
from newskills.launch.scripts.unit_clients import EvalClientScript
from newskills.models.kinds import LLAMACPP_KEY
from newskills_sandbox.variables import TOKEN_VARIABLE

NONE = ClusterConfig()
SLURM = ClusterConfig(executor="slurm", job_dir="/jobs", containers={"vllm": "/vllm.sqsh"})


def context(
    own: str = "main",
    *,
    cluster: ClusterConfig = SLURM,
    image: str | None = None,
    environ: dict[str, str] | None = None,
    **components: Any,
) -> Context:
    """`components`: name of the command → its script."""
    known = {script.serial: (name, script.listens) for name, script in components.items()}
    return Context(cluster=cluster, own=own, image=image, components=known, environ=environ or {})


def server(**settings: Any) -> ServerScript:
    return ServerScript(server_type="vllm", model_path="/models/m", **{"num_gpus": 2, **settings})


def shown(word: str | Ref) -> str:
    return word if isinstance(word, str) else f"{word.before}<{word.component}.{word.attribute}>{word.after}"


def line(script: Script) -> str:
    return " ".join(shown(word) for word in script.argv)


def test_the_port_of_a_server_is_chosen_on_its_node() -> None:
    made = server(server_args="--max-model-len 4096").build(context("server", image="/vllm.sqsh"))
    assert made.argv[:3] == ("vllm", "serve", "/models/m")
    assert "--port <server.port>" in line(made)
    assert line(made).endswith("--max-model-len 4096")
    assert "--tensor-parallel-size 2" in line(made)
    assert made.port == 0
    assert made.ready is not None
    assert (made.ready.path, made.all_nodes, made.tasks_per_node) == ("/health", False, 1)


def test_a_port_of_ones_own() -> None:
    made = server(port=8000).build(context("server"))
    assert made.port == 8000
    assert "--port <server.port>" in line(made)
    assert server(port=8000).get_address().endswith(":8000")
    with pytest.raises(ConfigError, match="needs a port"):
        server(allocate_port=False)


@given(
    st.lists(
        st.sampled_from(["65432", "65431", "8000000", "--port=65432", "node-8000000.invalid:65430", "6543", "x"]),
        max_size=6,
    )
)
def test_numbers_of_the_users_are_never_taken_for_the_port(args: list[str]) -> None:
    made = ServerScript("sglang", "/m", num_gpus=1, num_nodes=2, server_args=args).build(context("s"))
    assert list(made.argv[len(made.argv) - len(args) :]) == args
    refs = [word for word in made.argv if isinstance(word, Ref)]
    assert sorted(ref.attribute for ref in refs) == ["meeting", "port", "rank"]


def test_sglang_on_two_nodes() -> None:
    made = ServerScript("sglang", "/m", num_gpus=8, num_nodes=2).build(context("s"))
    assert "--nnodes 2 --node-rank <s.rank> --dist-init-addr <s.meeting>" in line(made)
    assert made.all_nodes


def test_megatron_on_two_nodes() -> None:
    made = ServerScript("megatron", "/m", num_gpus=8, num_nodes=2).build(context("s"))
    meeting = "--node-rank <s.rank> --master-addr <s.node> --master-port <s.meeting_port>"
    assert f"--nproc-per-node 8 --nnodes 2 {meeting}" in line(made)
    assert made.all_nodes


def test_vllm_on_two_nodes_runs_inside_ray() -> None:
    made = server(num_nodes=2).build(context("s"))
    text = line(made)
    assert "newskills.launch.ray_node --nodes=2 --rank=<s.rank> --host=<s.host> --port=<s.port> -- " in text
    assert "--distributed-executor-backend ray" in text
    assert made.all_nodes


def test_trtllm_on_two_nodes_has_a_process_for_each_gpu() -> None:
    script = ServerScript("trtllm", "/m", num_gpus=4, num_nodes=2)
    assert script.num_tasks == 4
    assert script.build(context("s")).tasks_per_node == 4


def test_servers_without_a_health_route_and_unknown_ones() -> None:
    made = ServerScript("megatron", "/m", num_gpus=1).build(context("s"))
    assert made.ready is not None
    assert made.ready.any_answer
    assert made.env["PYTHONPATH"]
    with pytest.raises(UnknownNameError, match="'vlm'"):
        ServerScript("vlm", "/m").build(context("s"))
    with pytest.raises(ConfigError, match="a hosted service"):
        ServerScript("openai", "gpt").build(context("s"))


def test_servers_bind_no_more_than_they_need() -> None:
    script = ServerScript("llamacpp", "smollm2", num_gpus=0)
    assert "--host 127.0.0.1" in line(script.build(context("s", cluster=NONE)))
    assert "--host 0.0.0.0" in line(script.build(context("s", cluster=SLURM)))
    assert script.build(context("s", cluster=NONE)).argv[0] == sys.executable


def test_servers_that_can_ask_for_a_key_do_so_by_name() -> None:
    keyed = {LLAMACPP_KEY: "k"}
    assert ServerScript("llamacpp", "smollm2", num_gpus=0).build(context("s", environ=keyed)).secrets == (
        LLAMACPP_KEY,
    )
    assert ServerScript("llamacpp", "smollm2", num_gpus=0).build(context("s")).secrets == ()
    assert ServerScript("vllm", "/m").build(context("s", environ=keyed)).secrets == ()


def test_a_sandbox() -> None:
    script = SandboxScript(env_overrides=["NEMO_SKILLS_SANDBOX_SESSION_TIMEOUT=5", "A=b=c"])
    made = script.build(context("sandbox", image="/x.sqsh", environ={TOKEN_VARIABLE: "t"}))
    assert (
        line(made)
        == "python3 -m newskills sandbox serve --host 0.0.0.0 --max_timeout 3600.0 --port <sandbox.port>"
    )
    assert made.env == {"NEMO_SKILLS_SANDBOX_SESSION_TIMEOUT": "5", "A": "b=c"}
    assert (made.secrets, made.port) == ((TOKEN_VARIABLE,), 0)
    assert made.ready is not None
    assert made.ready.path == "/health"
    open_to_the_net = SandboxScript(env_overrides={"NEMO_SKILLS_SANDBOX_BLOCK_NETWORK": "0"})
    assert "--network" in open_to_the_net.build(context("sandbox")).argv
    with pytest.raises(ConfigError, match="NAME=value"):
        SandboxScript(env_overrides=["A"]).build(context("s"))


def test_a_text_refers_to_servers_by_variables() -> None:
    one, two = server(), server()
    script = BaseJobScript(f"curl http://{one.get_address()}/v1 '{{}}' && echo {two.hostname_ref()} $HOME")
    made = script.build(context("main", **{"big-one": one, "two": two}))
    assert made.argv[:2] == ("bash", "-c")
    assert made.argv[2] == (
        "curl http://${NEWSKILLS_HOST_BIG_ONE}:${NEWSKILLS_PORT_BIG_ONE}/v1 '{}' && echo ${NEWSKILLS_HOST_TWO} $HOME"
    )
    assert made.env == {
        "NEWSKILLS_HOST_BIG_ONE": Ref("big-one", "host"),
        "NEWSKILLS_PORT_BIG_ONE": Ref("big-one", "port"),
        "NEWSKILLS_HOST_TWO": Ref("two", "host"),
    }


def test_two_names_never_share_a_variable() -> None:
    one, two = server(), server()
    script = BaseJobScript(f"{one.hostname_ref()} {two.hostname_ref()}")
    made = script.build(context("main", **{"a.b": one, "a-b": two}))
    assert len(made.env) == 2
    assert {ref.component for ref in made.env.values() if isinstance(ref, Ref)} == {"a.b", "a-b"}


def test_words_stay_words() -> None:
    one = server()
    words = ["prog", "a b", "it's", f"--url=http://{one.get_address()}/v1", one.hostname_ref()]
    made = BaseJobScript(words).build(context("main", server=one))
    assert made.argv == (
        "prog",
        "a b",
        "it's",
        Ref("server", "address", "--url=", "/v1"),
        Ref("server", "host"),
    )
    with pytest.raises(ConfigError, match="several things at once"):
        BaseJobScript(["x", one.get_address()]).build(context("main", server=one))


def test_the_host_of_what_listens_nowhere_is_its_node() -> None:
    other = BaseJobScript("sleep 1")
    made = BaseJobScript(f"ping {other.hostname_ref()}").build(context("main", other=other))
    assert made.env == {"NEWSKILLS_HOST_OTHER": Ref("other", "node")}


def test_a_script_of_another_job_cannot_be_reached() -> None:
    with pytest.raises(ConfigError, match="no command of its job runs"):
        BaseJobScript(f"x {server().hostname_ref()}").build(context("main"))
    with pytest.raises(ConfigError, match="no command of its job runs"):
        GenerationClientScript(output_dir="/o", servers=[server()]).build(context("main"))


def test_functions_return_texts_words_or_an_environment() -> None:
    assert BaseJobScript(lambda: "echo 1").build(context()).argv == ("bash", "-c", "echo 1")
    assert BaseJobScript(lambda: ["a", "b c"]).build(context()).argv == ("a", "b c")
    made = BaseJobScript(lambda: ("env", {"environment": {"A": "1"}})).build(context())
    assert (made.argv[2], made.env) == ("env", {"A": "1"})
    with pytest.raises(ConfigError, match="returned 'environmen'; did you mean 'environment'"):
        BaseJobScript(lambda: ("env", {"environmen": {}})).build(context())
    with pytest.raises(ConfigError, match="returned int"):
        BaseJobScript(lambda: 3).build(context())


def test_settings_of_all_scripts() -> None:
    made = BaseJobScript(
        "x", span_group_nodes=True, num_tasks_override=3, installation_command="pip install y"
    ).build(context())
    assert (made.all_nodes, made.tasks_per_node, made.setup, made.port) == (True, 3, "pip install y", None)
    own = BaseJobScript("x", port=0, ready="/ok")
    made = own.build(context())
    assert (made.port, made.ready is not None and made.ready.path) == (0, "/ok")


def test_generation() -> None:
    one, sandbox = server(), SandboxScript()
    script = GenerationClientScript(
        output_dir="/out dir",
        input_file="/in.jsonl",
        extra_arguments="++prompt_config=generic/math ++stop='a b'",
        random_seed=3,
        chunk_id=1,
        num_chunks=4,
        servers=[one],
        sandbox=sandbox,
        wandb_parameters={"name": "n", "wandb_project": "p", "log_samples": None},
    )
    made = script.build(context("main", server=one, sandbox=sandbox, environ={TOKEN_VARIABLE: "t"}))
    words = [shown(word) for word in made.argv]
    assert words[:5] == [sys.executable, "-m", "newskills", "generate", "--cluster=none"]
    assert words[5:] == [
        "--output_dir=/out dir",
        "--input_file=/in.jsonl",
        "--random_seeds=3",
        "--num_chunks=4",
        "--chunk_ids=1",
        "--model=/models/m",
        "--server_type=vllm",
        "--server_address=<server.address>",
        "--with_sandbox",
        "++sandbox.host=<sandbox.host>",
        "++sandbox.port=<sandbox.port>",
        "--wandb_name=n",
        "--wandb_project=p",
        "++prompt_config=generic/math",
        "++stop=a b",
    ]
    assert made.secrets == (TOKEN_VARIABLE,)
    assert script.paths == ("/out dir", "/in.jsonl")
    with pytest.raises(ConfigError, match="go together"):
        GenerationClientScript(output_dir="o", chunk_id=1).build(context())


def test_shell_texts_around_a_client_contain_none_of_its_words() -> None:
    script = GenerationClientScript(
        output_dir="o'u t", input_file="i", preprocess_cmd="cd x", postprocess_cmd="date", requirements=["a>1"]
    )
    made = script.build(context())
    assert made.argv[:4] == ("bash", "-c", 'set -e\ncd x\n"$@"\ndate', "bash")
    assert "--output_dir=o'u t" in made.argv
    assert made.setup == f"{sys.executable} -m pip install 'a>1'"


def test_servers_of_the_job_and_of_others() -> None:
    one = server(served_name="mine")
    script = EvalScript(
        output_dir="/o",
        benchmarks="gsm8k:4",
        servers=[one, None],
        server_addresses_prehosted=[None, "http://h:1/v1"],
        model_names=["", "big"],
        server_types=["", "openai"],
    )
    text = line(script.build(context("main", s=one)))
    assert "eval --cluster=none --benchmarks=gsm8k:4 --output_dir=/o" in text
    assert "--model=mine --server_type=vllm --server_address=<s.address>" in text
    assert "--model=big --server_type=openai --server_address=http://h:1/v1" in text


def test_summaries() -> None:
    made = SummarizeScript("/results", benchmarks="gsm8k", wandb_parameters={"name": "x"}).build(context())
    assert line(made).endswith(
        "newskills summarize_results --cluster=none --benchmarks=gsm8k --wandb_name=x -- /results"
    )


@pytest.mark.parametrize(
    ("mode", "codes", "code"),
    [
        ("sequential", [0, 0], 0),
        ("sequential", [3, 0, 4, 0], 4),
        ("parallel", [3, 0, 4, 0], 4),
        ("parallel", [0], 0),
        ("sequential", [], 0),
    ],
)
def test_units_all_run_and_the_last_failure_is_the_exit_code(
    tmp_path: Path, mode: str, codes: list[int], code: int
) -> None:
    units = []
    for number, unit_code in enumerate(codes):
        text = f'echo "$0" > "{tmp_path}/unit {number}"; exit {unit_code}'
        units.append(BaseJobScript(["bash", "-c", text, 'it\'s "a" $HOME'], installation_command="pip install x"))
    made = EvalClientScript(units, mode).build(context())
    done = subprocess.run(made.argv, timeout=300, check=False)
    assert done.returncode == code
    assert len(list(tmp_path.iterdir())) == len(codes)
    assert all(file.read_text() == 'it\'s "a" $HOME\n' for file in tmp_path.iterdir())
    assert made.setup == ("pip install x" if codes else "")


def test_units_share_servers() -> None:
    one = server()
    units = [GenerationClientScript(output_dir=f"/o/{n}", servers=[one]) for n in range(2)]
    made = EvalClientScript(units).build(context("main", server=one))
    assert sum(isinstance(word, Ref) for word in made.argv) == 2
    assert EvalClientScript(units).paths == ("/o/0", "/o/1")


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_units_save_their_work_after_a_signal(tmp_path: Path, mode: str) -> None:
    """The first saves what it has; in a sequence, the second one does not even begin."""
    text = f'trap "sleep 0.3; touch {tmp_path}/saved-$0; exit 75" TERM; touch {tmp_path}/here-$0; sleep 60 & wait'
    units = [BaseJobScript(["bash", "-c", text, name]) for name in "ab"]
    made = EvalClientScript(units, mode).build(context())
    process = subprocess.Popen(made.argv, start_new_session=True)
    begun = [tmp_path / f"here-{name}" for name in ("ab" if mode == "parallel" else "a")]
    while not all(file.exists() for file in begun):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(120) == 75
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith("saved")) == [
        file.name.replace("here", "saved") for file in begun
    ]
