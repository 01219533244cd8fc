"""Stop a search by a time limit or Ctrl-C, also within compiled code and HiGHS, which react to these too late."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..errors import _validate
from ..errors._types import FloatArray

FIRST_RUN_SECONDS = 20.0  # seconds of the first run of HiGHS; as it starts anew, each later run gets more
POLL_SECONDS = 0.05  # seconds between two looks at the clock and for Ctrl-C
_delayed_interrupts: list[int] = []  # signals of Ctrl-C that came in the main thread during a search


def end_time(time_limit: float | None) -> float:
    """Return when a time limit (s) that starts now is over, in seconds of `time.monotonic`; infinity for None."""
    return np.inf if time_limit is None else time.monotonic() + _validate.positive_number(time_limit, "time_limit", "s")


@contextmanager
def delay_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C until `check_ctrl_c` is called or the block ends: inside a compiled call it can crash Python."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is not signal.default_int_handler:
        yield  # only the main thread gets signals, and another's handler is respected
        return
    signal.signal(signal.SIGINT, lambda number, frame: _delayed_interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        came = len(_delayed_interrupts)
        _delayed_interrupts.clear()
    if came:
        raise KeyboardInterrupt


def check_ctrl_c() -> None:
    """Raise KeyboardInterrupt if a Ctrl-C was delayed."""
    if _delayed_interrupts and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def solve_integer_program(
    costs: FloatArray, rows: list[Any], whole: Any, low: Any, high: Any, end: float, gap: float = 0.0
) -> tuple[FloatArray | None, float, bool]:
    """Minimise costs @ x by HiGHS; return x, a lower bound, and whether the program was solved in time.

    ``rows`` are the linear constraints, ``whole`` marks the integer variables, and the program counts as solved if the
    relative gap is below ``gap``. If no x is feasible, x is None, the bound infinite, and the program solved.
    """
    from scipy.optimize import Bounds, milp

    whole, low, high = (np.broadcast_to(values, len(costs)) for values in (whole, low, high))
    # HiGHS runs in a thread of its own, as it checks its clock too seldom and Ctrl-C does not stop it. Python cannot
    # exit before that thread ends: the first run is therefore short, and later ones get more time.
    seconds = FIRST_RUN_SECONDS
    while True:
        options: Any = {"mip_rel_gap": gap, "time_limit": max(min(end - time.monotonic(), seconds), 0.0)}
        solve = partial(milp, costs, integrality=whole, bounds=Bounds(low, high), constraints=rows, options=options)
        result = _run_in_thread(solve, end)
        if result is None:
            return None, -np.inf, False
        if result.status != 1 or time.monotonic() + POLL_SECONDS > end:  # 1: its time was up
            break
        seconds *= 10
    if result.status == 2:  # 2: infeasible, which is an answer too
        return None, np.inf, True
    if result.status not in (0, 1):
        raise RuntimeError(f"HiGHS failed: {result.message}")
    bound = -np.inf if result.mip_dual_bound is None else result.mip_dual_bound
    return result.x, bound, result.status == 0


def _run_in_thread(solve: Callable[[], Any], end: float) -> Any:
    """Run a function in a thread; return its result, or None if it is still running at ``end``."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(solve()))
    thread.start()
    while thread.is_alive() and time.monotonic() < end + POLL_SECONDS:
        thread.join(POLL_SECONDS)
        check_ctrl_c()
    return found[0] if found else None
