"""Replications: run a task over many cases, in parallel and resumably, and collect a tidy table.

A *case* is a dict of plain values, such as ``{"city": "grid", "method": "gp-pm", "seed": 3}``. A *task* is a function
that takes these values as keyword arguments and returns rows. Each finished case is stored as one line in a file, so
that a study can be interrupted at any moment and resumed. Only one study at a time can write to a file.

The file identifies a task only by its name. If the function, or code that it calls, has changed, use another file.
Every value that affects a result must be part of the case.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._files.version import version_with_commit
from ..errors import EmsoptError, InputError, _validate
from ..errors._types import PathLike, Progress
from .json_lines import json_lines
from .loop import progress_bar
from .parallel import map_on_executor, map_unordered, one_thread

if TYPE_CHECKING:
    import pandas as pd

Case: TypeAlias = dict[str, Any]
Row: TypeAlias = dict[str, Any]

_KIND, _FORMAT_VERSION = "emsopt study", 1
ROUNDING = 2e-8  # largest rounding error of a value in a stored study
_RESULT_COLUMNS = {"evaluation", "best", "best_known", "p_median", "cpu_seconds"}


class StudyError(EmsoptError, RuntimeError):
    """The task raised an error for some cases of a study; all other cases are finished.

    ``failures`` has each failed case and the text of its error, ``results`` (DataFrame) the rows of the finished cases.

    Examples
    --------
    >>> try:
    ...     run(lambda number: {"inverse": 1 / number}, cases(number=[1, 0]))
    ... except StudyError as error:
    ...     error.failures
    [({'number': 0}, 'ZeroDivisionError: division by zero')]
    """

    def __init__(self, message: str, failures: list[tuple[Case, str]], results: pd.DataFrame) -> None:
        super().__init__(message)
        self.failures, self.results = failures, results


def run(
    task: Callable[..., object],
    cases: Iterable[Mapping[str, Any]],
    *,
    file: PathLike | None = None,
    backend: object = "serial",
    workers: int | None = None,
    progress: Progress = False,
) -> pd.DataFrame:
    """Call a task once for every case and return all rows.

    Parameters
    ----------
    task : callable
        Called as ``task(**case)``. Returns one row (a dict), a list of rows, or a DataFrame (whose index is kept if it
        is named). Values must be plain: text, numbers, booleans, None, and lists of them. Other processes must be able
        to import the function.
    cases : sequence of dict
        Distinct dicts of plain values, with the same names in every case; see `cases`. Tuples are passed to the task as
        lists, and numpy numbers as Python numbers.
    file : path-like, optional
        JSON-lines file to which each finished case is appended. Cases already stored in it are not run again, and
        further cases of the same task with the same names can be added.
    backend : {"serial", "processes"}, dask.distributed.Client or concurrent.futures.Executor
        Where tasks run: in this process, in several processes on this machine, on the workers of a Dask cluster
        (install ``emsopt[scale]``), or on an executor. Linear algebra uses one thread per task.
    workers : int, optional
        Number of processes for backend "processes". Default: the number of cores.
    progress : bool or callable
        Whether to show a progress bar, or a function called with (cases done, number of cases).

    Returns
    -------
    DataFrame
        The rows in the order of ``cases``, each with the values of the case followed by those that the task returned.

    Raises
    ------
    StudyError
        If the task raised an error for some cases. A further run retries only these.
    InputError
        If an argument is invalid, or the file is damaged or belongs to another task or to cases with other names.

    Examples
    --------
    >>> def square(number, power):
    ...     return {"result": number**power}
    >>> run(square, cases(number=[2, 3], power=2))
       number  power  result
    0       2      2       4
    1       3      2       9
    """
    import pandas as pd

    if (name := getattr(task, "__qualname__", None)) is None:
        raise InputError(f"`task` must be a function defined at the top level of a module; got {task!r}.")
    by_key = _check_cases(cases)  # refused before anything is computed
    columns = list(next(iter(by_key.values())))
    map_cases = _map_function(backend, workers)
    with _open_file(file, name, columns) as (done, append), progress_bar(progress, len(by_key), "case") as show:
        rows = {key: done[key] for key in by_key if key in done}
        left = [(key, case) for key, case in by_key.items() if key not in rows]  # if none, no workers start
        failed: dict[str, tuple[str, str]] = {}
        show(len(rows))
        # closing cancels what is left if an error comes from here, such as of `progress`
        with closing(map_cases(partial(_run_case, task), left)) if left else nullcontext(()) as found:
            for key, result, failure in found:
                if failure is None:
                    append(by_key[key], result)
                    rows[key] = result
                else:
                    failed[key] = failure
                show(len(rows) + len(failed))
    flat = [case | row for key, case in by_key.items() for row in rows.get(key, ())]  # in the order of the cases
    table = pd.DataFrame(flat) if flat else pd.DataFrame(columns=columns)
    if failed:
        raise _study_error(by_key, failed, file, table)
    return table


def _study_error(
    by_key: dict[str, Case], failed: dict[str, tuple[str, str]], file: PathLike | None, table: pd.DataFrame
) -> StudyError:
    """Return the `StudyError` for failed cases; ``failed`` maps keys to an error message and a traceback."""
    failures = [(case, failed[key][0]) for key, case in by_key.items() if key in failed]
    first = "; ".join(f"{case}: {error}" for case, error in failures[:5]) + "; ..." * (len(failures) > 5)
    rest = "are in `results`" if file is None else f"are stored in {file}; run again to retry"
    error = StudyError(f"{len(failures)} of {len(by_key)} cases failed: {first}. The others {rest}.", failures, table)
    error.add_note(f"The first of them:\n{next(failed[key][1] for key in by_key if key in failed)}")
    return error


def cases(**dimensions: object) -> list[Case]:
    """Return the Cartesian product of some dimensions as a list of dicts, the last dimension varying fastest.

    Text, dicts and values that are no collections are the same in every case.

    Examples
    --------
    >>> cases(method=["local", "random"], seed=range(2), budget=50)[1]
    {'method': 'local', 'seed': 1, 'budget': 50}
    """
    values = ([v] if isinstance(v, (str, Mapping)) or not isinstance(v, Iterable) else v for v in dimensions.values())
    return [dict(zip(dimensions, row, strict=True)) for row in itertools.product(*values)]


def seed_of(case: Mapping[str, Any]) -> int:
    """Return a random seed below 2^63 that depends only on the names and values in a case, not on their order.

    Examples
    --------
    >>> seed_of({"city": 1, "seed": 0}) == seed_of({"seed": 0, "city": 1}) != seed_of({"city": 0, "seed": 1})
    True
    """
    return int.from_bytes(hashlib.sha256(_case_key(case).encode()).digest()[:8], "big") >> 1


def _check_cases(cases: Any) -> dict[str, Case]:
    """Return the cases in the given order, by their `_case_key` and with plain values; raise if they are invalid."""
    by_key, names = dict[str, Case](), list[str]()
    for case in cases:
        key = _case_key(case)  # equal values give one key, whatever their order and type
        names = names or list(case)
        if set(case) != set(names):
            raise InputError(f"all cases must have the same keys; got {names} and {list(case)}.")
        if key in by_key:
            raise InputError(f"Cases must be distinct; {key} occurs more than once.")
        plain = json.loads(key)  # as they will be after reading the file: plain lists and numbers
        by_key[key] = {name: plain[name] for name in names}
    if not names:
        raise InputError(f"`cases` must hold at least one case with at least one value; got {cases!r}.")
    return by_key


def _case_key(case: object) -> str:
    """Return a case as JSON text with sorted names, so that cases with equal values have the same text."""
    if not isinstance(case, Mapping) or not all(isinstance(name, str) for name in case):
        raise InputError(f"A case must be a dict of values by name; got {case!r}.")
    try:
        return json.dumps(case, sort_keys=True, allow_nan=False, default=_to_plain)  # JSON has no NaN
    except (TypeError, ValueError) as error:
        raise InputError(f"A case must hold text, finite numbers, bools, None or lists: {error}.") from error


def _to_plain(value: object) -> object:
    """Convert NumPy numbers and arrays to plain values for `json`."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r} is not a plain value")


def outcomes(runs: pd.DataFrame, *, within: float = 0.0) -> pd.DataFrame:
    """Return one row per run: its final value, and how long it took to come close to the best known value.

    Parameters
    ----------
    runs : DataFrame
        Rows of runs in order of ``evaluation``, with ``best`` (the smallest value so far, positive), ``best_known`` and
        ``cpu_seconds``, as `emsopt.datasets.load_study` returns the location studies. All other columns except
        ``p_median`` identify the runs.
    within : float
        Tolerance, in percent above ``best_known``.

    Returns
    -------
    DataFrame
        The columns that identify a run, its last ``best``, its ``gap`` to ``best_known`` in percent, whether it
        ``reached`` the tolerance, and the ``evaluations`` and ``cpu_seconds`` needed for that, infinite if it did not.

    Examples
    --------
    >>> import emsopt as eo
    >>> runs = eo.datasets.load_study("location_st_paul").query("version == 'embedded'")
    >>> eo.study.outcomes(runs).groupby("method")["evaluations"].median()["gp-pm"]
    np.float64(29.5)
    """
    within = _validate.positive_number(within, "within", "%", zero=True)
    _validate.check_columns(runs, ["evaluation", "best", "best_known", "cpu_seconds"], "runs", "a location study")
    keys = [name for name in runs if name not in _RESULT_COLUMNS]  # whatever else is a column tells runs apart
    ends = runs.groupby(keys, sort=False).tail(1).set_index(keys)
    ends["gap"] = 100 * (ends["best"] / ends["best_known"] - 1)
    near = runs[runs["best"] <= (1 + within / 100) * runs["best_known"] + ROUNDING]
    first = near.groupby(keys, sort=False)[["evaluation", "cpu_seconds"]].first().reindex(ends.index)
    ends["reached"] = first["evaluation"].notna()
    ends[["evaluations", "cpu_seconds"]] = first.fillna(np.inf)
    return ends.drop(columns="evaluation").reset_index()


def _map_function(backend: object, workers: int | None) -> Callable[..., Any]:
    """Return a generator of (function, items) that yields ``function(item)`` of each item from the given backend."""
    if workers is not None:
        workers = _validate.whole_number(workers, "workers")
        if backend != "processes":
            raise InputError(f"`workers` requires backend='processes'; got backend={backend!r}.")
    name = backend if isinstance(backend, str) else ""  # an array would be compared entry by entry
    if name == "serial":
        return _map_serially
    if name == "processes":  # more threads in each would compete for cores
        return partial(map_unordered, backend="loky", n_jobs=workers or -1, inner_max_num_threads=1)
    dask = sys.modules.get("distributed")  # a client can exist only if `distributed` is loaded, which takes long
    if dask is not None and isinstance(backend, dask.Client):  # quicker than joblib's backend for Dask
        backend = backend.get_executor(pure=False)  # not pure: Dask would reuse the result of an equal call
    if isinstance(backend, Executor):
        return partial(map_on_executor, backend)
    wanted = "'serial', 'processes', a distributed.Client or a concurrent.futures.Executor"
    raise InputError(f"`backend` must be {wanted}; got {backend!r}.")


def _map_serially(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield ``function(item)`` of each item; its own use of joblib stays in this process, too."""
    from joblib import parallel_config

    with parallel_config(backend="sequential"):
        yield from map(function, items)


def _run_case(
    task: Callable[..., object], item: tuple[str, Case]
) -> tuple[str, list[Row], None] | tuple[str, None, tuple[str, str]]:
    """Run one case, given with its key; return the key, its rows or None, and (error, traceback) or None."""
    from threadpoolctl import threadpool_limits

    key, case = item
    try:
        with one_thread, threadpool_limits(1):  # the first for tasks side by side in threads, the second for OpenMP
            # through JSON, so that new rows equal those read from a file
            return key, json.loads(json.dumps(_to_rows(task(**case), case), default=_to_plain)), None
    except Exception as error:  # noqa: BLE001 - a task may raise anything
        return key, None, (f"{type(error).__name__}: {error}", traceback.format_exc())


def _to_rows(result: object, case: Case) -> list[Row]:
    """Return a task's result as a list of rows; raise if it has another form, or a column with a name of the case."""
    import pandas as pd

    if isinstance(result, pd.DataFrame):
        named = [name for name in result.index.names if name is not None]
        result = result.reset_index(named).to_dict("records")
    rows = [result] if isinstance(result, Mapping) else result
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"A task must return a dict, a list of dicts or a DataFrame; got {result!r}.")
    for row in rows:
        if both := sorted(set(row) & set(case)):
            raise InputError(f"A task must not return columns that its case has; rename {', '.join(both)}.")
    return list(rows)


@contextmanager
def _open_file(
    path: PathLike | None, task: str, columns: list[str]
) -> Iterator[tuple[dict[str, list[Row]], Callable[[Case, list[Row]], object]]]:
    """Open the file of a study, if any; yield rows of finished cases by `_case_key`, and a function to store a case."""
    if path is None:
        yield {}, lambda case, rows: None
        return
    header = {_KIND: _FORMAT_VERSION, "task": task, "columns": sorted(columns)}
    with json_lines(path, _KIND, "study", "file") as log:
        if not log.lines:
            log.append(header | {"version": version_with_commit()})
        first, *lines = log.lines or [header]
        for name, here in header.items():  # not the version, which may differ
            if first.get(name) != here:
                difference = f"its {name} is {first.get(name)!r}, but that of this study is {here!r}"
                raise InputError(f"{path} belongs to another study: {difference}. Name another file.")
        done: dict[str, list[Row]] = {}
        for number, line in enumerate(lines, 2):
            case: Any = line.get("case")
            with suppress(InputError):  # refused below
                done[_case_key(case)] = _to_rows(line.get("rows"), case)
                if set(case) == set(columns):
                    continue
            log.raise_damaged(number)
        yield done, lambda case, rows: log.append({"case": case, "rows": rows})
