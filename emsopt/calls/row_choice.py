"""Choose rows of a table by an expression or by values of its columns."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._files.columns import BLANKS, text
from .._types import BoolArray
from .._validate import as_float, shown
from ..errors import InputError

Choice: TypeAlias = "str | Mapping[str, object]"

EXAMPLE = "\"Priority == 1 and Type != 'TRANSFER'\" or {'Priority': [1, 2]}"
LONGEST = 2000  # characters
WORDS = {"&": " and ", "|": " or ", "~": " not "}
ALLOWED = (
    *(ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Name, ast.Load, ast.Constant, ast.List),
    *(ast.Tuple, ast.Set, ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
ORDERS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
HOW: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    **ORDERS,
    ast.In: lambda one, some: one in some,
    ast.NotIn: lambda one, some: one not in some,
}


class Chooser:
    """A choice that has been checked: ``names`` of its columns, and what it says of the cells of a row."""

    def __init__(self, where: Choice) -> None:
        self.names: list[str] = []
        if isinstance(where, Mapping) and where and all(isinstance(name, str) for name in where):
            self.names = list(where)
            several = (list, tuple, set, frozenset, np.ndarray)
            values = [{_value(v) for v in (each if isinstance(each, several) else [each])} for each in where.values()]
            self._chosen: Callable[..., Any] = lambda *row: all(v in kept for v, kept in zip(row, values, strict=True))
            return
        if not isinstance(where, str) or len(where) > LONGEST:
            raise _refused(where)
        quoted_or_sign = r"('[^']*'|\"[^\"]*\")|[&|~]"
        try:
            body = ast.parse(re.sub(quoted_or_sign, lambda m: m[1] or WORDS[m[0]], where).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise _refused(where) from error
        for node in ast.walk(body):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            ordered = isinstance(node, ast.Compare) and any(type(how) in ORDERS for how in node.ops)
            within = isinstance(node, ast.Compare) and any(isinstance(how, (ast.In, ast.NotIn)) for how in node.ops)
            texts = any(
                isinstance(_constant(side), str) for side in (sides if ordered else sides[1:] if within else ())
            )
            if not isinstance(node, ALLOWED) or texts:
                raise _refused(where)
            if isinstance(node, ast.Constant):
                node.value = _value(node.value)  # type: ignore[assignment]
            elif isinstance(node, ast.Name) and node.id not in self.names:
                self.names.append(node.id)
        if (
            not self.names
            or any(name.startswith("__") for name in self.names)
            or (
                not isinstance(body, (ast.BoolOp, ast.Compare))
                and not (isinstance(body, ast.UnaryOp) and isinstance(body.op, ast.Not))
            )
        ):
            raise _refused(where)
        self._chosen = lambda *row: _holds(body, dict(zip(self.names, row, strict=True)))

    def mask(self, columns: Sequence[Sequence[object]]) -> BoolArray:
        """Return which rows are chosen, shape (rows,), from the columns of ``names``."""
        cells = [list(map(_value, column)) for column in columns]
        return np.array([self._chosen(*row) for row in zip(*cells, strict=True)], dtype=bool)


def _holds(node: ast.expr, row: Mapping[str, object]) -> Any:
    """Return the value of a node of `ALLOWED` for a row, whose cells are given by column."""
    match node:
        case ast.BoolOp(op=op, values=parts):
            return (all if isinstance(op, ast.And) else any)(_holds(part, row) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _holds(operand, row)
        case ast.UnaryOp(operand=operand):
            return -_holds(operand, row)
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [_holds(side, row) for side in (left, *others)]
            return all(
                _compared(HOW[type(op)], *pair) for op, pair in zip(ops, itertools.pairwise(values), strict=True)
            )
        case ast.Name(id=name):
            return row[name]
        case ast.Constant(value=value):
            return value
    return [_holds(part, row) for part in node.elts]  # type: ignore[attr-defined]


def _compared(how: Callable[[Any, Any], bool], one: object, other: object) -> bool:
    try:
        return how(one, other)
    except TypeError:  # text or a blank cell is neither above nor below a number
        return False


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _value(cell: object) -> object:
    """Return a cell as a number if it reads as one, None if it is blank, and else as text."""
    word = text(cell).strip()
    if word.lower() in BLANKS:
        return None
    try:
        return as_float(word)
    except ValueError:
        return word


def _refused(where: object) -> InputError:
    return InputError(
        "`where` must compare columns with numbers or texts by ==, !=, <, <=, >, >=, in, and, or, not, such as "
        f"{EXAMPLE}; got {shown(where)}. Give a mapping if the name of a column has other characters than letters, "
        "digits and _, and use `CallLog.between` for times."
    )
