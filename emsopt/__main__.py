"""The main job from the command line: find where the units of a city should wait.

``python -m emsopt`` runs it on St. Paul, offline; ``--city FOLDER`` on a city of one's own.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from ._validate import positive_number
from .errors import EmsoptError, InputError

DEFAULT_FOLDER = "emsopt-results"
ST_PAUL_UNITS = 9


def main(arguments=None):
    """Run the command; return its exit status."""
    options = _parse(arguments)
    try:
        _run(options)
    except KeyboardInterrupt:
        print("\nInterrupted; nothing was written that is not complete.", file=sys.stderr)
        return 130
    except EmsoptError as error:
        print(f"emsopt: {error}", file=sys.stderr)
        return 2
    return 0


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="emsopt", description="Find where the units of a city should wait.")
    parser.add_argument(
        "--city", metavar="FOLDER", help="folder of a city as City.save writes it (default: St. Paul)"
    )
    parser.add_argument("--units", type=int, metavar="P", help="fleet size (default: 9 for St. Paul)")
    parser.add_argument(
        "--load",
        type=float,
        metavar="RHO",
        help="rescale the calls to this offered load per unit (default: as the data say)",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        default=8.0,
        metavar="MIN",
        help="responses of this many minutes or more are late (default: 8)",
    )
    parser.add_argument(
        "--evaluator",
        choices=["exact", "approximate"],
        help="default: exact up to 12 units, else approximate",
    )
    parser.add_argument(
        "--queue", action="store_true", help="calls wait when all units are busy (default: are lost)"
    )
    parser.add_argument("--colocate", action="store_true", help="allow several units at a site")
    parser.add_argument("--out", default=DEFAULT_FOLDER, metavar="FOLDER", help=f"default: {DEFAULT_FOLDER}")
    return parser.parse_args(arguments)


def _run(options):
    from .city import City
    from .datasets import load_st_paul

    start = time.perf_counter()
    ours = options.city is None
    city = load_st_paul() if ours else City.load(options.city)
    units = ST_PAUL_UNITS if ours and options.units is None else options.units
    if units is None:
        msg = "say how many units the fleet has: --units P."
        raise InputError(msg)
    if options.load is not None:
        city = city.with_offered_load(options.load, units)
    positive_number(options.threshold, "threshold", "min")
    out = _make_folder(options.out)
    print(
        f"{city.name}: {city.n_atoms} atoms, {city.n_sites} sites, {units} units, {city.total_rate:.2f} calls/h, "
        f"offered load {city.offered_load(units):.3f} per unit (share of time busy if no call were lost)"
    )
    closest = city.response_times.min(axis=0) @ city.demand_shares
    print(
        f"The closest site is {closest:.1f} min away on average; a call takes {city.mean_service_time:.1f} min in all."
    )
    if closest > city.mean_service_time:
        print("That cannot be: service includes the way there. Are all times in minutes?")
    if city.notes:
        print(city.notes)
    found = _deployments(city, units, options)
    written = _print_tables(city, units, options, out)
    written += _draw(city, found, out)
    print(f"\nDone in {time.perf_counter() - start:.0f} s. Written to {out.resolve()}:")
    for path in written:
        print(f"  {path.name}")


def _make_folder(name):
    out = Path(name)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"`--out` must be a folder that can be written to; {name} cannot: {error}."
        raise InputError(msg) from error
    return out


def _deployments(city, units, options):
    """Find the optimum and the p-median deployment; print and return their evaluations."""
    from .evaluators import p_median
    from .objective import Objective
    from .optimizers import best_deployment
    from .sweeps import evaluate_table

    capacity = "queue" if options.queue else "loss"
    objective = Objective(city, units, options.evaluator, colocation=options.colocate, capacity=capacity)
    with _bar(f"{objective.evaluator} optimum") as progress:
        run = best_deployment(objective, progress=progress)
    best = "optimum" if "proven" in run.message else "best found"
    deployments = {best: run.x, "p-median": p_median(city, units, colocation=options.colocate).sites}
    print(
        f"\n{best.capitalize()} by {objective.label} ({objective.evaluator} hypercube, {capacity}): {run.message}."
    )
    idle = units - len(np.unique(city.twin_groups))
    if idle > 0:
        print(
            f"{idle} of the units gain the p-median nothing: it has one for every place; where they wait is arbitrary."
        )
    for name, sites in deployments.items():
        print(f"  {name:10}", ", ".join(city.site_names[k] for k in sites))
    for evaluator in dict.fromkeys([objective.evaluator, "approximate"]):
        table = evaluate_table(
            city, deployments, threshold=options.threshold, evaluator=evaluator, capacity=capacity
        )
        print(f"\n{evaluator} hypercube:\n{table.T.round(4).to_string()}")
    return {name: objective.evaluation(sites) for name, sites in deployments.items()}


def _print_tables(city, units, options, out):
    """Print the optimum against load, and St. Paul's as the papers print it; return the files written."""
    from .datasets import paper_table
    from .sweeps import load_sweep, service_rate_sweep

    capacity = "queue" if options.queue else "loss"
    loads, rates = paper_table(1).set_index("offered_load"), paper_table(3).set_index("mu_per_day")
    # The papers' figures are St. Paul's: nine units, calls lost, one unit a listed site, the load as it is.
    changed = options.load is not None or options.queue or options.colocate
    paper = options.city is None and units == ST_PAUL_UNITS and not changed
    settled = [load for load in loads.index if load < 1 or not options.queue]
    with _bar("loads") as progress:
        by_load = load_sweep(
            city, units, settled, colocation=options.colocate, capacity=capacity, progress=progress
        )
    title = f"Mean response (min) against offered load, approximate hypercube, {capacity}"
    theirs = (loads, "second version, Table 1") if paper else None
    written = [_print_table(title, by_load, theirs, out / "by_load.csv")]
    if paper:
        with _bar("service rates") as progress:
            by_rate = service_rate_sweep(city, units, rates.index, progress=progress)
        title = "Mean response (min) against service rate (calls a day), approximate hypercube, loss"
        theirs = (rates, "first version, Table 3")
        written.append(_print_table(title, by_rate, theirs, out / "by_service_rate.csv"))
    return written


def _print_table(title, ours, theirs, path):
    table = ours[["optimum", "p_median", "lower_bound"]]
    if theirs is not None:
        papers, source = theirs
        columns = {"optimum_min": "optimum", "p_median_min": "p_median", "upper_bound_min": "p_median"}
        table = table.join(papers.filter(columns).rename(columns=columns).add_suffix(" (paper)"))
        title += f"; paper: {source}"
    if not ours["found"].str.contains("proven").all():
        table = table.rename(columns={"optimum": "best found"})
    print(f"\n{title}\n{table.round(2).to_string()}")
    return _whole(path, ours.to_csv)


def _draw(city, found, out):
    """Write map and figure of the deployments; return the files written."""
    from .maps import deployment_map
    from .plots import deployments

    if city.atom_locations is None or city.site_locations is None:
        print(
            "\nNo map and no figure: the city has no coordinates (columns lon, lat or x, y of atoms and sites)."
        )
        return []
    figure, _ = deployments(city, found)
    return [
        deployment_map(city, found).save(out / "deployments.html"),
        _whole(out / "deployments.png", lambda path: figure.savefig(path, dpi=150, format="png")),
    ]


def _whole(path, write):
    """Let ``write`` make a file beside ``path`` and put it in place once it is complete."""
    draft = path.with_name(f".{path.name}.part")
    try:
        write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


class _bar:  # noqa: N801 - a context manager that reads like a function
    """A progress bar on the terminal that hands out a ``progress(done, total)`` callback."""

    def __init__(self, label):
        from tqdm import tqdm

        self.bar = tqdm(desc=label, leave=False, disable=None)

    def __enter__(self):
        def progress(done, total):
            self.bar.total = total
            self.bar.update(done - self.bar.n)

        return progress

    def __exit__(self, *_):
        self.bar.close()


if __name__ == "__main__":
    sys.exit(main())
