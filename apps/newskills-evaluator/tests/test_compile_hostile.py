# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a config: it compiles, or a sentence for people says why not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, UserError
from newskills.base.records import Row
from newskills_evaluator.compile.compiler import CompileRequest, compile_config
from newskills_evaluator.compile.interpolate import Resolver, split_references
from newskills_evaluator.compile.tree import get_at_path, merge_trees, set_at_path

PIECES = [
    "${",
    "}",
    "{",
    "\\${",
    ".",
    "..",
    "execution.",
    "oc.env:",
    "A",
    ",",
    ":",
    "'",
    '"',
    "[0]",
    "???",
    "x",
    "run.env",
    " ",
]
texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False), texts)
keys = st.sampled_from(
    ["execution", "deployment", "target", "evaluation", "export", "run", "env", "env_vars", "type", "tasks", "name",
     "nemo_evaluator_config", "config", "params", "mounts", "proxy", "auto_export", "api_endpoint", "defaults", "x"]
)  # fmt: skip
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)
configs = st.dictionaries(keys, trees, max_size=6)


@settings(max_examples=80)
@given(
    config=configs, overrides=st.dictionaries(st.sampled_from(["execution", "a.b", "evaluation.tasks.0"]), texts)
)
def test_no_config_makes_it_stumble(
    tmp_path_factory: pytest.TempPathFactory, config: Row, overrides: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("c")
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    with suppress(UserError):
        compile_config(CompileRequest(config=str(folder / "c.yaml"), overrides=overrides), {"A": "a"}, folder)


@settings(max_examples=80)
@given(texts)
def test_pieces_of_a_text_are_all_of_it(text: str) -> None:
    try:
        pieces = split_references(text)
    except ConfigError:
        return
    whole = "".join(f"${{{piece}}}" if inside else piece for inside, piece in pieces)
    assert whole == text.replace("\\${", "${")


@settings(max_examples=60)
@given(configs, configs)
def test_laying_one_over_another_changes_neither(below: Row, above: Row) -> None:
    before = repr((below, above))
    done = merge_trees(below, above)
    assert repr((below, above)) == before
    assert merge_trees(done, above) == done
    assert merge_trees(done, {}) == done
    assert set(done) == set(below) | set(above)


@given(st.lists(keys, min_size=1, max_size=4), scalars)
def test_what_is_put_is_found(path: list[str], value: object) -> None:
    tree: dict[str, object] = {}
    set_at_path(tree, path, value)
    assert get_at_path(tree, path) == value


def test_references_into_each_other_take_no_time() -> None:
    tree = {f"k{n}": f"${{k{n + 1}}} ${{k{n + 1}}}" for n in range(60)} | {"k60": "x"}
    resolver = Resolver(tree, {})
    with pytest.raises(ConfigError, match="grow"):
        resolver.resolve_tree()


def test_a_file_that_is_no_config_is_told(tmp_path: Path) -> None:
    for text in ("- 1\n", "x: [\n", "a: 1\na: 2\n", "\x00", "x: " + "[" * 3000, f"x: {'${' * 3000}y{'}' * 3000}"):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(UserError):
            compile_config(CompileRequest(config=str(tmp_path / "c.yaml")), {}, Path(tmp_path))
