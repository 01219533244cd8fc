"""Select the rows of a log by a condition, and join those that are about the same incident.

An incident may have a row per unit, per status of a unit, or per patient. Rows are joined if they have the same
incident number and lie within `LONGEST_GAP` seconds and `WIDEST_KM` of each other: numbers may restart every day,
stand for a type of call or be shared by two services. The first unit on scene is kept, with the earliest time of the
call. Rows of the same unit are its statuses or its patients; other rows are further units.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numba import njit

from .._files.columns import BLANKS, text
from ..errors import InputError
from ..errors._types import BoolArray, FloatArray, IntArray, Times
from ..errors._validate import as_float, quote
from . import _names, _times
from ._points import project

Condition: TypeAlias = "str | Mapping[str, object]"
Relation: TypeAlias = Callable[[Any, Any], bool]

LONGEST_CONDITION = 2000  # characters: deep nesting could crash the parser
OPERATOR_WORDS = {"&": " and ", "|": " or ", "~": " not "}
ALLOWED_NODES = (
    *(ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Name, ast.Load, ast.Constant, ast.List),
    *(ast.Tuple, ast.Set, ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
ORDERINGS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
MEMBERSHIP: dict[type[ast.cmpop], Relation] = {ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
COMPARISONS: dict[type[ast.cmpop], Relation] = {ast.Eq: operator.eq, ast.NotEq: operator.ne, **ORDERINGS, **MEMBERSHIP}
LONGEST_GAP, LONGEST_STATUS_GAP, SHORTEST_GAP = 2 * 3600.0, 12 * 3600.0, 600.0  # seconds; the last if names come back
WIDEST_KM, KM_PER_DEGREE = 0.5, 111.2
MOST_INCIDENTS = 3  # of one name: with more, it is the name of something else, such as a type of call
MOST_UNITS = 10  # rows per incident on average: with more, the column names something else


def compile_condition(where: Condition) -> tuple[list[str], Callable[[Sequence[Sequence[object]]], BoolArray]]:
    """Return the columns that a condition names, and a function from their cells, by column, to a mask of rows."""
    names, chosen = _compile_mapping(where) if isinstance(where, Mapping) else _compile_expression(where)
    return names, lambda columns: np.array([chosen(*map(_parse_cell, row)) for row in zip(*columns, strict=True)])


def _compile_mapping(where: Mapping[str, object]) -> tuple[list[str], Callable[..., bool]]:
    """Return the columns of a mapping to allowed values, and a function that tells if a row's cells are allowed."""
    if not where or not all(isinstance(name, str) for name in where):
        raise _condition_error(where)
    several = (list, tuple, set, frozenset, np.ndarray)
    values = [{_parse_cell(v) for v in (each if isinstance(each, several) else [each])} for each in where.values()]
    return list(where), lambda *row: all(v in kept for v, kept in zip(row, values, strict=True))


def _compile_expression(where: object) -> tuple[list[str], Callable[..., bool]]:
    """Return the columns of an expression, and a function from the cells of a row to whether it holds."""
    body = _parse_condition(where)
    nodes = list(ast.walk(body))
    names = list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))
    decides = isinstance(getattr(body, "op", None), ast.Not) or isinstance(body, (ast.BoolOp, ast.Compare))
    if not decides or not names or not all(map(_is_allowed, nodes)):
        raise _condition_error(where)
    for node in nodes:
        if isinstance(node, ast.Constant):
            node.value = _parse_cell(node.value)  # type: ignore[assignment]
    return names, lambda *row: _evaluate_node(body, dict(zip(names, row, strict=True)))


def _parse_condition(where: object) -> ast.expr:
    """Return the syntax tree of an expression, with ``&``, ``|`` and ``~`` read as words."""
    if not isinstance(where, str) or len(where) > LONGEST_CONDITION:
        raise _condition_error(where)
    quoted_or_sign = r"('[^']*'|\"[^\"]*\")|[&|~]"
    try:
        worded = re.sub(quoted_or_sign, lambda m: m[1] or OPERATOR_WORDS[m[0]], where)
        return ast.parse(worded.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise _condition_error(where) from error


def _is_allowed(node: ast.AST) -> bool:
    """Return whether a node may occur in a condition, which may not compare the order or parts of texts."""
    if not isinstance(node, ast.Compare):
        return isinstance(node, ALLOWED_NODES)
    sides: list[ast.expr] = []
    if any(type(how) in ORDERINGS for how in node.ops):
        sides = [node.left, *node.comparators]
    elif any(type(how) in MEMBERSHIP for how in node.ops):
        sides = node.comparators
    return not any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)


def _evaluate_node(node: ast.expr, row: Mapping[str, object]) -> Any:
    """Return the value of a node of an allowed expression for a row, a mapping from columns to cells."""
    match node:
        case ast.BoolOp(op=op, values=parts):
            return (all if isinstance(op, ast.And) else any)(_evaluate_node(part, row) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate_node(operand, row)
        case ast.UnaryOp(operand=operand):
            return -_evaluate_node(operand, row)
        case ast.Compare(left=left, ops=ops, comparators=others):
            pairs = itertools.pairwise(_evaluate_node(side, row) for side in (left, *others))
            return all(_compare(COMPARISONS[type(op)], *pair) for op, pair in zip(ops, pairs, strict=True))
        case ast.Name(id=name):
            return row[name]
        case ast.Constant(value=value):
            return value
    return [_evaluate_node(part, row) for part in node.elts]  # type: ignore[attr-defined]


def _compare(how: Callable[[Any, Any], bool], one: object, other: object) -> bool:
    with suppress(TypeError):  # text or a blank cell is neither above nor below a number
        return how(one, other)
    return False


def _parse_cell(cell: object) -> object:
    """Convert a cell to a number if it reads as one, to None if it is blank, else to text."""
    word = text(cell).strip()
    if word.lower() in BLANKS:
        return None
    try:
        return as_float(word)
    except ValueError:
        return word


def _condition_error(where: object) -> InputError:
    return InputError(
        "`where` must compare columns with numbers or texts by ==, !=, <, <=, >, >=, in, and, or, not, such as "
        f"\"Priority == 1 and Type != 'TRANSFER'\" or {{'Priority': [1, 2]}}; got {quote(where)}. Give a mapping if "
        "the name of a column has other characters than letters, digits and _, and use `CallLog.between` for times."
    )


def join_rows(
    names: pd.Series[Any], times: Times, places: FloatArray, details: pd.DataFrame, statuses: bool, patients: bool
) -> tuple[IntArray, Times, pd.DataFrame, tuple[float, float]]:
    """Join the rows of each incident, by ``names`` of incidents; rows must be in order of time.

    Rows have ``places``, (K, 2), in degrees, and `CallLog.details`. Those without a name are incidents of their own,
    and those without a unit a unit of their own, unless the log has one row per status or per patient. Return the row
    of each incident that is kept, (n,), its first time, (n,), its details, and `CallLog.join_extent`.
    """
    code = pd.factorize(names.to_numpy())[0]  # -1 for None
    code = np.where(code < 0, code.max(initial=-1) + 1 + np.arange(len(code)), code)
    km = KM_PER_DEGREE * project(places, (places[0, 0], float(np.median(places[:, 1]))))
    incident = _find_incidents(code, times, km, LONGEST_STATUS_GAP if statuses else LONGEST_GAP)
    if not statuses and len(np.unique(incident)) * MOST_UNITS < len(code):
        incident = np.arange(len(code))
    _, first, incident = np.unique(incident, return_index=True, return_inverse=True)
    per_unit = not (statuses or patients)
    unit = np.arange(len(code)) if per_unit else np.full(len(code), -1)
    if "unit" in details:
        unit = np.where(details["unit"].notna(), len(code) + pd.factorize(details["unit"])[0], unit)
    stamps = details[[role for role in _names.STAMPS if role in details]]
    if len(first) < len(code):
        latest, earliest = (stamps.groupby([incident, unit]).transform(which) for which in ("max", "min"))
        stamps = earliest.assign(**latest[latest.columns.intersection(["cleared"])])
    kept = _first_rows_on_scene(stamps, times, incident)
    kept = kept[np.argsort(times[first], kind="stable")]
    joined = details.assign(**stamps).iloc[kept].reset_index(drop=True)
    if len(first) < len(code) and "units_sent" not in details and (per_unit or "unit" in details):
        sent = pd.Series(unit[unit >= 0]).groupby(incident[unit >= 0]).nunique()
        joined["units_sent"] = sent.reindex(incident[kept], fill_value=1).to_numpy().astype(float)
    late, far = (times - times[first][incident]).astype(float) / 60, km - km[first][incident]
    extent = float(late.max(initial=0)), float(np.hypot(*far.T).max(initial=0))
    return kept, times[first][incident[kept]], joined, extent


def _first_rows_on_scene(stamps: pd.DataFrame, times: Times, incident: IntArray) -> IntArray:
    """Return the row of each incident whose unit was first on scene; without arrivals, the first one with a stamp."""
    on_scene = stamps["on_scene"].to_numpy() if "on_scene" in stamps else times
    on_scene = np.where(np.isnat(on_scene), _times.LATEST_TIME, on_scene)
    order = np.lexsort((np.arange(len(times)), stamps.isna().all(axis=1), on_scene, incident))
    return order[np.unique(incident[order], return_index=True)[1]]


def _find_incidents(code: IntArray, times: Times, km: FloatArray, longest: float) -> IntArray:
    """Return the first row of each row's incident, (K,): rows of one code near each other and within ``longest`` s."""
    by_name = np.argsort(code, kind="stable")
    seconds, (x, y) = times.astype(np.int64)[by_name].astype(float), km[by_name].T
    limit = np.full(len(code), longest)
    for _ in range(2):
        incident = _link_rows(code[by_name], seconds, x, y, limit)
        often = np.bincount(code[by_name], incident == np.arange(len(code))) > MOST_INCIDENTS
        limit[often[code[by_name]]] = SHORTEST_GAP if longest == LONGEST_GAP else longest
    found = np.empty(len(code), dtype=np.int64)
    found[by_name] = by_name[incident]
    return found


@njit(cache=True, nogil=True)
def _link_rows(code: IntArray, seconds: FloatArray, x: FloatArray, y: FloatArray, longest: FloatArray) -> IntArray:
    """Return the first row of each row's incident, (K,): rows join the last earlier row of their code in reach."""
    incident = np.arange(len(code))
    for i in range(len(code)):
        j = i - 1
        while j >= 0 and code[j] == code[i] and seconds[i] - seconds[j] <= longest[i]:
            if (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 <= WIDEST_KM**2:
                incident[i] = incident[j]
                break
            j -= 1
    return incident


def stamps_of_statuses(statuses: pd.Series[str], when: Times) -> pd.DataFrame:
    """Return a column of times per role of a stamp, from a log with a status per row; NaT for other statuses."""
    roles = statuses.map({word: _names.stamp_of_status(word) for word in statuses.dropna().unique()}).to_numpy()
    found = {role: np.where(roles == role, when, np.datetime64("NaT", "s")) for role in _names.STAMPS}
    return pd.DataFrame({role: stamps for role, stamps in found.items() if not np.isnat(stamps).all()})
