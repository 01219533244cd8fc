"""How the benchmarks measure time."""

import statistics
import time

import numpy as np


def median_seconds(function, runs, clock=time.process_time):
    """Return the median CPU seconds of a call, of all threads (or those of another clock), after one that compiles."""
    return medians(function, runs, clock)[0]


def medians(function, runs, *clocks):
    """Return the median seconds of a call by each clock, after one call that compiles."""
    function()
    seconds = []
    for _ in range(runs):
        start = [clock() for clock in clocks]
        function()
        seconds.append([clock() - began for clock, began in zip(clocks, start, strict=True)])
    return [statistics.median(column) for column in zip(*seconds, strict=True)]


def growth_exponent(sizes, seconds):
    """Return the exponent b of seconds = a * size ** b, fitted by least squares to their logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
