"""Use several cores: calls distributed over processes, rows of work over threads, and linear algebra on one thread."""

import concurrent.futures
import os
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..errors import _validate
from ..errors._types import ArrayLike, FloatArray, IntArray, Progress
from .loop import progress_bar

Workers: TypeAlias = int | Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
"""Type of ``workers``: a number of processes, or a function that is called like `map`."""


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_unordered(function: Callable[[Any], Any], items: Iterable[Any], **options: Any) -> Generator[Any, None, None]:
    """Yield ``function(item)`` of each item through joblib, in order of completion.

    An item is taken from ``items`` only when a worker is free for it, and ``options`` are those of
    `joblib.parallel_config`. Closing the generator cancels calls that are not finished.
    """
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(**options):
        work = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
    results = work(delayed(function)(item) for item in items)
    try:
        for result in results:  # noqa: UP028 - `yield from` would close them itself, with the warning
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that calls are cancelled
            results.close()


def map_on_executor(
    executor: concurrent.futures.Executor, function: Callable[[Any], Any], items: Iterable[Any]
) -> Generator[Any, None, None]:
    """Yield ``function(item)`` of each item, in order of completion; closing the generator cancels calls not begun."""
    futures = [executor.submit(function, item) for item in items]
    try:
        for future in concurrent.futures.as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def make_parallel_map(workers: Workers) -> Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]:
    """Return the user's function, or one like `map` that uses ``workers`` processes (-1: one per core), in any order.

    One worker takes an item only when its result is needed. The user's function gets all items at once, in a list.
    """
    if callable(workers):
        return lambda function, items: workers(function, list(items))
    number = cores() if workers == -1 else _validate.whole_number(workers, "workers")
    return map if number == 1 else partial(map_unordered, n_jobs=number)


class _OneThread:
    """Context in which linear algebra uses one thread, everywhere in the process.

    Small matrices gain nothing from more threads, and waiting for a busy core can take many times as long as the work.
    Rounding, and with it the course of an optimizer, would also depend on the number of cores. Of several threads
    inside the context, the first to enter sets the limit, and the last to leave lifts it.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._libraries: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._libraries is None:
                import scipy.linalg  # noqa: F401 - loads its libraries, to limit them too
                from threadpoolctl import ThreadpoolController

                self._libraries = ThreadpoolController()
            if self._inside == 0:
                self._release()
                self._limit = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._release()
                self._limit.restore_original_limits()
                self._release()

    def _release(self) -> None:
        """Allow any thread to set the next limit: otherwise OpenBLAS obeys only the thread that set the last one."""
        for library in self._libraries.lib_controllers:
            getattr(library, "clear_controlling_thread", lambda force: None)(force=True)


one_thread = _OneThread()


def map_rows(
    function: Callable[[IntArray], ArrayLike], rows: ArrayLike, workers: int | None = None, progress: Progress = False
) -> FloatArray:
    """Apply ``function`` to chunks of n ``rows`` and return its values in order, shape (n,).

    ``function`` takes an array of some rows, shape (K, ...), and returns one number for each. ``workers`` threads, by
    default one per core, run in parallel because the kernels release the interpreter lock.
    """
    rows = np.asarray(rows)
    workers = cores() if workers is None else _validate.whole_number(workers, "workers")
    size = max(1, min(512, -(-len(rows) // (4 * workers))))  # about four per thread, so that all end together
    parts = [rows[:1], *(rows[k : k + size] for k in range(1, len(rows), size))]
    results = [np.empty(0)]  # without rows, the result is an empty array of floats
    with progress_bar(progress, len(rows), "deployment") as show:

        def chunk_values() -> Iterator[ArrayLike]:
            yield function(parts[0])  # one row in this thread, to compile kernels only once
            if len(parts) > 1:
                with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                    yield from pool.map(function, parts[1:])

        for result in chunk_values():  # after an error, `pool.map` cancels the chunks that have not started
            results.append(np.asarray(result, dtype=float))
            show(sum(map(len, results)))
    return np.concatenate(results)
