# SPDX-License-Identifier: Apache-2.0
"""Small tasks in the two layouts of Terminal-Bench, whose images are built of the agents' own."""

from __future__ import annotations

from pathlib import Path

PYTEST = """#!/bin/bash
echo "=== short test summary info ==="
if [ "$(cat {file} 2>/dev/null)" = "{text}" ] && [ "$TEST_DIR" = /tests ] && [ -f /tests/expected.txt ]
then echo "PASSED ../tests/test_outputs.py::test_{name}"
else echo "FAILED ../tests/test_outputs.py::test_{name} - AssertionError: no {file}"; fi
"""
COMPOSE = """services:
  client:
    build:
      dockerfile: Dockerfile
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: ["sh", "-c", "sleep infinity"]
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
"""
STORE = """    depends_on: {{store: {{condition: service_healthy}}}}
  store:
    image: {image}
    command: ["sh", "-c", "cd /data && python3 -m http.server 80"]
    volumes: ["./store:/data:ro"]
    healthcheck:
      test: ["CMD", "python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1/index.txt')"]
      interval: 200ms
      retries: 100
"""
FROM_STORE = (
    "$(python3 -c 'import urllib.request as u; print(u.urlopen(\"http://store/index.txt\").read().decode())')"
)
REWARD = """#!/bin/bash
if [ "$(cat /work/{file} 2>/dev/null)" = "{text}" ]; then echo 1 > /logs/verifier/reward.txt
else echo 0 > /logs/verifier/reward.txt; fi
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def terminal_bench_tasks(folder: Path, image: str) -> Path:
    """`greeting` and `number`, as Terminal-Bench 1 writes tasks, `two` of two containers, and one that needs rights."""
    for name, text in (("greeting", "hello"), ("number", "42")):
        task = folder / name
        write(
            task / "task.yaml",
            f"instruction: |-\n  Write {text} into /app/{name}.txt.\nauthor_name: nobody\ndifficulty: easy\n"
            "category: files\ntags: [files]\nparser_name: pytest\nmax_agent_timeout_sec: 300.0\n"
            "max_test_timeout_sec: 60.0\nrun_tests_in_same_shell: false\n",
        )
        write(task / "Dockerfile", f"FROM {image}\nWORKDIR /app\nCOPY start.txt /app/start.txt\n")
        write(task / "start.txt", "here\n")
        write(task / "docker-compose.yaml", COMPOSE)
        write(task / "run-tests.sh", PYTEST.format(file=f"/app/{name}.txt", text=text, name=name))
        write(task / "tests" / "expected.txt", text)
        write(task / "solution.sh", f"#!/bin/bash\necho {text} > {name}.txt\n")
    task = folder / "two"
    write(task / "task.yaml", "instruction: Write page into /app/two.txt.\ndifficulty: hard\n")
    write(task / "Dockerfile", f"FROM {image}\nWORKDIR /app\nCOPY start.txt /app/start.txt\n")
    write(task / "start.txt", "here\n")
    write(task / "docker-compose.yaml", COMPOSE + STORE.format(image=image))
    write(task / "store" / "index.txt", "page")
    write(task / "run-tests.sh", PYTEST.format(file="/app/two.txt", text=FROM_STORE, name="two"))
    write(task / "tests" / "expected.txt", "page")
    write(folder / "rights" / "task.yaml", "instruction: x\ndifficulty: hard\n")
    write(folder / "rights" / "run-tests.sh", "true\n")
    write(folder / "rights" / "docker-compose.yaml", "services: {client: {}, db: {image: db, privileged: true}}\n")
    return folder


def harbor_tasks(folder: Path, image: str) -> Path:
    """`copy` with an image that is there, `count` with a Dockerfile, as Harbor writes tasks; `slow` has tests that
    hang, `silent` tests without a verdict."""
    for name, text in (("copy", "same"), ("count", "3"), ("slow", "x"), ("silent", "x")):
        task = folder / name
        ready = f'docker_image = "{image}"\n' if name != "count" else ""
        write(
            task / "task.toml",
            'version = "1.0"\n[metadata]\nauthor_name = "nobody"\ndifficulty = "easy"\ncategory = "files"\n'
            f'tags = ["files"]\n[verifier]\ntimeout_sec = {3.0 if name == "slow" else 60.0}\n[agent]\n'
            f"timeout_sec = 300.0\n[environment]\nbuild_timeout_sec = 600.0\n{ready}cpus = 1\nmemory = '512M'\n"
            "workdir = '/work'\n",
        )
        write(task / "instruction.md", f"Write {text} into {name}.txt.\n")
        script = {"slow": "sleep 600\n", "silent": "exit 1\n"}.get(name)
        write(task / "tests" / "test.sh", script or REWARD.format(file=f"{name}.txt", text=text))
        write(task / "solution" / "solve.sh", f"#!/bin/bash\necho {text} > {name}.txt\n")
    write(folder / "count" / "environment" / "Dockerfile", f"FROM {image}\nRUN mkdir /work\nWORKDIR /work\n")
    for name in ("copy", "slow", "silent"):
        text = (folder / name / "task.toml").read_text().replace("'/work'", "'/tmp'")
        (folder / name / "task.toml").write_text(text)
        test = folder / name / "tests" / "test.sh"
        test.write_text(test.read_text().replace("/work/", "/tmp/"))
    return folder


def stepped_task(folder: Path, image: str, name: str, first: str) -> None:
    """A task of two steps whose instructions are commands; the second has files and a script that sets it up, and sees
    what the first has left, but not its tests. `first`: the command of the first."""
    write(
        folder / name / "task.toml",
        f'schema_version = "1.4"\n[environment]\ndocker_image = "{image}"\nworkdir = "/tmp"\n'
        '[[steps]]\nname = "one"\nmin_reward = 1.0\n'
        '[[steps]]\nname = "two"\n[steps.agent]\nuser = 4321\n[steps.verifier.env]\nWORD = "b"\n',
    )
    judge = "#!/bin/bash\nif {test}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    steps = folder / name / "steps"
    write(steps / "one" / "instruction.md", first)
    write(steps / "one" / "tests" / "test.sh", judge.format(test='[ "$(cat /tmp/one.txt)" = a ]'))
    write(steps / "one" / "tests" / "secret.txt", "a")
    write(steps / "two" / "instruction.md", "echo $(cat /tmp/one.txt) $(cat /tests/secret.txt) b > /tmp/two.txt")
    write(steps / "two" / "workdir" / "setup.sh", "cat given.txt > /tmp/set.txt\n")
    write(steps / "two" / "workdir" / "given.txt", "ready")
    own = '[ "$(stat -c %u /tmp/two.txt)" = 4321 ]'
    test = f'[ "$(cat /tmp/two.txt)" = "a $WORD" ] && [ "$(cat /tmp/set.txt)" = ready ] && {own}'
    write(steps / "two" / "tests" / "test.sh", judge.format(test=test))
    write(steps / "one" / "solution" / "solve.sh", "echo a > /tmp/one.txt\n")
    write(steps / "two" / "solution" / "solve.sh", "echo a b > /tmp/two.txt; chown 4321 /tmp/two.txt\n")


def phased_tasks(folder: Path, image: str) -> Path:
    """Tasks of Harbor's whose agent or tests are closed off, have users, or have a container of their own; `sick` never
    gets ready. Each instruction is the command that solves it."""
    links = "$(grep -c : /proc/net/dev)"
    verdict = "#!/bin/bash\nif {test}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    tasks = {
        "closed": (
            '[agent]\nnetwork_mode = "no-network"\n',
            f"sleep 600 & echo {links} > /tmp/links.txt",
            f'[ "$(cat /tmp/links.txt) {links}" = "1 2" ]',
        ),
        "users": (
            "[agent]\nuser = 4321\n[verifier]\nuser = 4322\n",
            "grep -w Uid: /proc/self/status > /tmp/agent.txt && ! echo x > /etc/new",
            "grep -q 4321 /tmp/agent.txt && grep -w Uid: /proc/self/status | grep -q 4322",
        ),
        "apart": (
            '[verifier]\nenvironment_mode = "separate"\n'
            '[[verifier.collect]]\ncommand = "cp /tmp/state.txt /logs/artifacts/"\n',
            "echo a > /tmp/out.txt; echo b > /tmp/state.txt; echo c > /tmp/other.txt",
            "grep -q a /tmp/out.txt && grep -q b /logs/artifacts/state.txt && [ ! -e /tmp/other.txt ]",
        ),
        "sick": (
            '[environment.healthcheck]\ncommand = "false"\nretries = 2\ninterval_sec = 0.1\n',
            "true",
            "true",
        ),
    }
    for name, (config, command, test) in tasks.items():
        write(
            folder / name / "task.toml",
            'schema_version = "1.4"\nartifacts = ["/tmp/out.txt"]\n[environment]\n'
            f'docker_image = "{image}"\nworkdir = "/tmp"\n{config}',
        )
        write(folder / name / "instruction.md", command)
        write(folder / name / "tests" / "test.sh", verdict.format(test=test))
        write(folder / name / "solution" / "solve.sh", f"{command}\n")
    stepped_task(folder, image, "stepped", "echo a > /tmp/one.txt")
    stepped_task(folder, image, "gated", "echo wrong > /tmp/one.txt")
    return folder
