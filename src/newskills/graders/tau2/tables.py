# SPDX-License-Identifier: Apache-2.0
"""Services whose data are large tables, which all conversations of a run share; and what each such service can do."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from newskills.base.records import Row
from newskills.graders.tau2.service import RefusedCall, ToolService

_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_LONGEST = 500


class TableService(ToolService):
    """`data`: table → key → row. Its rows are never changed: `row` copies one before it is handed out."""

    def __init__(self, data: Mapping[str, Mapping[str, Row]], user_data: Row | None = None) -> None:
        super().__init__({table: dict(rows) for table, rows in data.items()}, user_data)
        self._shared = data

    def row(self, table: str, key: str) -> Row | None:
        """Return the row, free to be changed; None where there is none."""
        rows: dict[str, Row] = self.data[table]
        if key in rows and rows[key] is self._shared[table].get(key):
            rows[key] = msgspec.json.decode(_encode_sorted(rows[key]))
        return rows.get(key)

    def merge(self, changes: Row) -> None:
        """Lay `changes` over the data: mappings key by key."""
        self.data = deepcopy(self.data)
        super().merge(changes)

    def state(self) -> bytes:
        """Encode what differs from the shared tables; it is equal for equal data of services that began with these."""
        changed = {
            table: {
                key: row
                for key, row in rows.items()
                if row is not self._shared[table].get(key)
                and _encode_sorted(row) != _encode_sorted(self._shared[table].get(key))
            }
            for table, rows in self.data.items()
        }
        return _encode_sorted([changed, self.user_data])

    def calculate(self, expression: str) -> str:
        """Works out an arithmetic expression.

        expression: numbers, + - * / and round brackets, such as '2 + 2'
        """
        return str(_compute_expression(expression))

    def transfer_to_human_agents(self, summary: str) -> str:
        """Hands the user over to a person, where the user wants that or nothing else can help.

        summary: what it is about
        """
        return "Transfer successful"


def _encode_sorted(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _compute_expression(expression: str) -> float:
    """Compute arithmetic of numbers only; the text is a model's.

    All numbers are floats, so that no power takes long.
    """
    if len(expression) > _LONGEST or not set(expression) <= set("0123456789+-*/(). "):
        raise RefusedCall("the expression has other signs than numbers, + - * / and round brackets")
    try:
        return round(_worked_out(ast.parse(expression.strip(), mode="eval").body), 2)
    except (SyntaxError, ArithmeticError, KeyError, RecursionError, MemoryError, TypeError, ValueError) as error:
        raise RefusedCall("the expression cannot be worked out") from error


def _worked_out(node: Any) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_worked_out(node.left), _worked_out(node.right))
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_worked_out(node.operand))
    raise RefusedCall("the expression cannot be worked out")
