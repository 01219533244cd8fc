"""Spread rows of work over threads, or keep linear algebra to one."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from ._validate import callback, whole_number


def one_thread():
    """Return a context in which linear algebra uses one thread.

    Matrices of a hundred rows gain nothing from more, threads that wait for a busy core cost many times the work, and
    rounding, hence the run of an optimizer, would depend on how many cores there are.
    """
    return _linear_algebra().limit(limits=1, user_api="blas")


@cache
def _linear_algebra():
    import scipy.linalg  # noqa: F401 - brings its libraries, so that the limit holds for them too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def map_rows(function, rows, *, workers=None, progress=None):
    """Apply ``function`` to chunks of ``rows`` and return the concatenated results in order.

    The kernels release the interpreter lock.

    Parameters
    ----------
    function : callable
        From an array of rows to one value a row.
    rows : array_like, shape (K, ...)
    workers : int, optional
        Threads; as many as this process may use cores if left out.
    progress : callable, optional
        Called with (rows done, K) after each chunk.
    """
    rows = np.asarray(rows)
    if workers is None:
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = whole_number(workers, "workers")
    callback(progress, "progress")
    size = max(1, min(512, -(-len(rows) // (4 * workers))))
    parts = [rows[:1], *(rows[k : k + size] for k in range(1, len(rows), size))] if len(rows) else []
    results, done = [], 0

    def collect(result):
        nonlocal done
        results.append(np.asarray(result, dtype=float))
        done += len(results[-1])
        if progress is not None:
            progress(done, len(rows))

    if workers == 1 or len(parts) <= 1:
        for part in parts:
            collect(function(part))
    else:
        collect(function(parts[0]))  # one row, here, so that kernels compile once
        with ThreadPoolExecutor(workers) as pool:
            try:
                for result in pool.map(function, parts[1:]):
                    collect(result)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return np.concatenate(results) if results else np.empty(0)
