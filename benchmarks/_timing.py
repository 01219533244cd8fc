"""How the benchmarks measure time."""

import statistics
import time

import numpy as np


def median_seconds(function, runs, clock=time.thread_time):
    """Return the median CPU seconds of a call (or those of another clock), after one call that compiles."""
    function()
    seconds = []
    for _ in range(runs):
        start = clock()
        function()
        seconds.append(clock() - start)
    return statistics.median(seconds)


def growth_exponent(sizes, seconds):
    """Return the exponent b of seconds = a * size ** b, fitted by least squares to their logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
