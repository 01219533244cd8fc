"""Measure what the study runner adds to each case, by backend, with and without a file.

    python benchmarks/study_overhead.py

Wall-clock milliseconds per case of a task that does nothing: the median of five studies of 200 cases, with workers
started before. The cluster is a Dask LocalCluster of two processes; it is left out if dask is not installed.
"""

import argparse
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from emsopt import study


def nothing(number):
    return {"value": number}


def milliseconds(count, **options):
    times = []
    for repeat in range(6):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "study.jsonl" if options.get("file") else None
            start = time.perf_counter()
            study.run(nothing, study.cases(number=range(count)), **options | {"file": file})
            if repeat:  # the first one starts workers and loads modules
                times.append((time.perf_counter() - start) / count * 1e3)
    return statistics.median(times)


def report(name, count, **options):
    kept, plain = (milliseconds(count, file=file, **options) for file in (True, False))
    print(f"{name:22} {plain:7.2f} ms a case, {kept:7.2f} with a file")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    count = parser.parse_args().cases
    report("serial", count)
    report("processes, two workers", count, backend="processes", workers=2)
    if find_spec("distributed") is None:
        print("Dask: not installed (emsopt[scale])")
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        report("Dask, two workers", count, backend=client)


if __name__ == "__main__":
    import study_overhead  # by its name, as worker processes import it

    study_overhead.main()
