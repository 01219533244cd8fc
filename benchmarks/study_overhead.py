"""Measure what the study runner adds to each case, by backend and number of cases.

    python benchmarks/study_overhead.py

Milliseconds per case of a task that does nothing, in four processes with workers started before: wall-clock time, and
CPU time of the process that runs the study. Medians of three studies. Beside the runner stand joblib and Dask alone,
called directly; Dask is left out if it is not installed.
"""

import argparse
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import joblib
from _timing import growth_exponent

import emsopt as eo

WORKERS, REPEATS = 4, 3


def nothing(number):
    return {"value": number}


def runner(file=False, **options):
    """Return a function that runs a study of so many cases."""

    def run(count):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "study.jsonl" if file else None
            eo.study.run(nothing, eo.study.cases(number=range(count)), file=path, **options)

    return run


def seconds(run, count):
    """Return median wall-clock and CPU seconds."""
    taken = []
    for _ in range(REPEATS):
        clock, cpu = time.perf_counter(), time.process_time()
        run(count)
        taken.append((time.perf_counter() - clock, time.process_time() - cpu))
    return tuple(map(statistics.median, zip(*taken, strict=True)))


def report(name, run, counts):
    run(counts[0])  # starts workers and loads modules
    taken = [seconds(run, count) for count in counts]
    each = "".join(f"{1e3 * wall / n:8.2f} {1e3 * cpu / n:6.2f}" for (wall, cpu), n in zip(taken, counts, strict=True))
    exponents = [growth_exponent(counts, times) for times in zip(*taken, strict=True)]
    print(f"{name:28}{each}{exponents[0]:8.2f} {exponents[1]:6.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs=3, default=[100, 400, 1600])
    counts = parser.parse_args().cases
    heads = "".join(f"{n:>8}    CPU" for n in counts)
    print(f"{'ms per case':28}{heads}{'exponent':>8}    CPU")
    report("serial", runner(), counts)
    report("serial, with a file", runner(file=True), counts)
    report("joblib alone", lambda n: joblib.Parallel(WORKERS)(joblib.delayed(nothing)(k) for k in range(n)), counts)
    processes = {"backend": "processes", "workers": WORKERS}
    report("processes", runner(**processes), counts)
    report("processes, with a file", runner(file=True, **processes), counts)
    if find_spec("distributed") is None:
        print("Dask: not installed (emsopt[scale])")
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        report("Dask alone", lambda n: client.gather(client.map(nothing, range(n), pure=False)), counts)
        report("Dask client", runner(backend=client), counts)
        report("Dask client, with a file", runner(file=True, backend=client), counts)


if __name__ == "__main__":
    import study_overhead  # by its name, as worker processes import it

    study_overhead.main()
