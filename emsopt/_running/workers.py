"""Count cores, and distribute calls over processes with joblib or an executor."""

import concurrent.futures
import os
import warnings
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, TypeAlias

from .. import _validate

Workers: TypeAlias = int | Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
"""What ``workers`` takes: a number of processes, or a function that is called like `map`."""


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def as_completed(function: Callable[[Any], Any], items: Iterable[Any], **options: Any) -> Generator[Any, None, None]:
    """Yield ``function(item)`` of each item through joblib, in order of completion.

    An item is taken from ``items`` only when a worker is free for it. ``options`` are those of `joblib.Parallel`; the
    backend is the one that `joblib.parallel_config` sets. Closing the iterator cancels calls that are not finished.
    """
    from joblib import Parallel, delayed

    work = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs", **options)
    results = work(delayed(function)(item) for item in items)
    try:
        for result in results:  # noqa: UP028 - `yield from` would close them itself, with the warning
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that calls are cancelled
            results.close()


def submit(
    executor: concurrent.futures.Executor, function: Callable[[Any], Any], items: Iterable[Any]
) -> Generator[Any, None, None]:
    """Yield ``function(item)`` of each item, in order of completion; closing the iterator cancels calls not begun."""
    futures = [executor.submit(function, item) for item in items]
    try:
        for future in concurrent.futures.as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def mapper(workers: Workers) -> Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]:
    """Return a function like `map` for what the user gives as ``workers``; its results may come in any order.

    One worker takes an item only when its result is asked for. A function of the user gets all items at once, in a
    list.
    """
    if callable(workers):
        return lambda function, items: workers(function, list(items))
    number = cores() if workers == -1 else _validate.whole_number(workers, "workers")
    return map if number == 1 else partial(as_completed, n_jobs=number)
