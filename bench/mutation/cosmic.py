# SPDX-License-Identifier: Apache-2.0
"""Lists the mutants that cosmic-ray knows of files, or writes them; runs in cosmic-ray's own environment.

`python cosmic.py list FILE …` prints one JSON line for each mutant; `python cosmic.py show` reads such lines, and
prints for each the mutated source as a JSON string.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.util import read_python_source


def mutants(file: Path) -> Iterator[dict[str, object]]:
    """Yield file, operator, occurrence, line, column and definition of each mutant."""
    tree = get_ast_from_path(file)
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments():
            continue
        operator = operator_class()
        places = ((node, start) for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node))
        for occurrence, (node, (line, column)) in enumerate(places):
            yield {
                "file": str(file),
                "operator": name,
                "occurrence": occurrence,
                "line": line,
                "column": column,
                "definition": ASTQuery(node).get_definition_name() or "",
            }


def main(words: list[str]) -> None:
    if words[0] == "list":
        for name in words[1:]:
            for mutant in mutants(Path(name)):
                print(json.dumps(mutant))
    else:
        for mutant in map(json.loads, sys.stdin):
            source, operator = read_python_source(Path(mutant["file"])), get_operator(mutant["operator"])()
            try:
                mutated = mutate_code(source, operator, mutant["occurrence"])
            except Exception as error:  # some operators fail on some code: such a mutant cannot be drawn
                print(f"{mutant}: {error!r}", file=sys.stderr)
                mutated = None
            print(json.dumps(mutated or ""))


if __name__ == "__main__":
    main(sys.argv[1:])
