"""How the benchmarks measure time."""

import statistics
import time


def median_seconds(function, runs, clock=time.thread_time):
    """Return the median CPU seconds of a call (or those of another clock), after one call that compiles."""
    function()
    seconds = []
    for _ in range(runs):
        start = clock()
        function()
        seconds.append(clock() - start)
    return statistics.median(seconds)
