"""Common parts of the commands: options, search for deployments, tables, map and figure."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from io import BytesIO
from typing import TYPE_CHECKING, cast

import numpy as np

from .._files.atomic import make_folder, write_file
from .._validate import positive_number
from ..errors import InputError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from .._types import IntArray, Progress
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.objective import Objective


# All files that the commands write. Those of an earlier run would mislead beside new ones.
RESULTS = (
    *("deployments.html", "deployments.png", "by_load.csv", "by_service_rate.csv", "checks.csv", "profile.csv"),
    *(
        "back_test.html",
        "recorded.csv",
        "calibration.csv",
        "deployments.csv",
        "scenarios.csv",
        "gains_by_atom.csv",
        "plan.csv",
        "plan_moves.csv",
    ),
)


EVERY_S = 15.0  # seconds between lines of progress


def add_fleet_options(parser: ArgumentParser) -> None:
    """Add the options of both commands: the objective, the model, the constraints on the fleet, and the folder."""
    add = parser.add_argument
    add(
        "--threshold",
        type=float,
        default=8.0,
        metavar="MIN",
        help="responses from MIN minutes on are late (default: 8)",
    )
    metric = "objective: mean response (default) or the fraction of late responses"
    add("--metric", choices=["response", "late"], default="response", help=metric)
    add("--evaluator", choices=["exact", "approximate"], help="default: exact for up to 12 units")
    add("--queue", action="store_true", help="calls wait when all units are busy (default: they are lost)")
    add("--colocate", action="store_true", help="allow several units at a site")
    for name, what in (("--pinned", "keep a unit (name a site twice to keep two)"), ("--closed", "get no unit")):
        add(name, nargs="+", action="extend", default=[], metavar="SITE", help=f"names of sites that {what}")
    add("--out", default="emsopt-results", metavar="FOLDER", help="folder for results (default: %(default)s)")


def solve(
    city: City,
    units: int,
    options: Namespace,
    inputs: list[str | None],
    write_tables: Callable[[Objective, dict[str, Evaluation], Path], Iterable[Path]],
    today: IntArray | None = None,
) -> None:
    """Find the best deployment, print it, and write tables, a map and a figure.

    Files of an earlier run that are not written again are removed from the folder, also if an interrupt or an error
    leaves only a part of the new ones.

    Parameters
    ----------
    city : City
    units : int
        Fleet size.
    options : Namespace
        Parsed options, including those of `add_fleet_options`.
    inputs : list of str or None
        Files and folders that were read, which results must not replace.
    write_tables : callable
        Prints and writes the results of a command. Takes the objective, the evaluations of deployments by name and
        the folder; yields each file once it is written.
    today : ndarray of int, optional
        Today's deployment, to compare with.
    """
    from ..city.deployment_space import DeploymentSpace
    from ..evaluators.objective import Objective

    start = time.perf_counter()
    positive_number(options.threshold, "threshold", "min")
    describe(city, units)
    space = DeploymentSpace(city, units, colocation=options.colocate, pinned=options.pinned, closed=options.closed)
    metric = ("late", options.threshold) if options.metric == "late" else "mean_response"
    capacity = "queue" if options.queue else "loss"
    objective = Objective(city, space, options.evaluator, metric, capacity=capacity)
    out = results_folder(options.out, inputs)
    found = find_deployments(objective, options.threshold, today)
    written: list[Path] = []
    try:
        written.extend(write_tables(objective, found, out))
    finally:
        if written:
            for stale in {out / name for name in RESULTS} - set(written):
                stale.unlink(missing_ok=True)
            print(f"\nAfter {time.perf_counter() - start:.0f} s, written to {out.resolve()}:")
            print(*(f"  {path.name}" for path in written), sep="\n")


def progress(what: str) -> Progress:
    """Return how a long computation shows its progress on stderr: a bar in a terminal, else a line now and then."""
    if sys.stderr.isatty():
        return True
    start = last = time.monotonic()

    def show(done: int, total: int | None) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= EVERY_S:
            last = now
            of = "" if total is None else f" of {total:,}"
            print(f"emsopt: {what}: {done:,}{of} after {now - start:.0f} s", file=sys.stderr, flush=True)

    return show


def results_folder(name: str, inputs: list[str | None]) -> Path:
    """Return the folder for results, creating it if necessary.

    Raise if an input is this folder or its subfolder ``city``, or a file directly in one of them.
    """
    out = make_folder(name, "--out")
    for path in filter(None, inputs):
        holder = path if os.path.isdir(path) else os.path.dirname(os.path.realpath(path))
        if os.path.realpath(holder) in (os.path.realpath(out), os.path.realpath(out / "city")):
            raise InputError(
                f"`--out` must not be the folder of the input {path}: results could replace it. Name another."
            )
    return out


def describe(city: City, units: int) -> None:
    """Print the size and load of the city, its mean times and its notes.

    A warning is added if the closest site is farther away, on average, than a call takes, which is impossible.
    """
    print(
        f"{city.name}: {city.n_atoms} atoms, {city.n_sites} sites, {units} units, {city.total_rate:.2f} calls/h, "
        f"offered load {city.offered_load(units):.3f} per unit (share of time busy if no call were lost)"
    )
    closest = city.response_times.min(axis=0) @ city.demand_shares
    service = city.mean_service_time
    print(f"Closest site: {closest:.1f} min away on average, turnout included; a call takes {service:.1f} min.")
    if closest > service:
        print("This is impossible, because service times include travel. Are all times in minutes?")
    if city.notes:
        print(city.notes)


def find_deployments(objective: Objective, threshold: float, today: IntArray | None = None) -> dict[str, Evaluation]:
    """Find and print the optimum and the p-median deployment; return their evaluations by name.

    ``threshold`` is the response time (min) from which a call is late. The optimum is named "best found" unless it is
    proven. With ``today``, sites of today's units, "today" comes first.
    """
    from ..evaluators import EXACT_UP_TO, p_median
    from ..evaluators.by_name import evaluate
    from ..optimizers import best_deployment
    from ..planning.sweeps import evaluate_table

    city, space, capacity = objective.city, objective.space, objective.options["capacity"]
    run = best_deployment(objective, rng=0, progress=progress("search, starts"))
    idle = space.units - int((space.capacities > 0).sum())
    best = "optimum" if "proven" in run.message else "best found"
    deployments = {} if today is None else {"today": today}
    deployments[best] = cast("IntArray", run.x)
    if idle <= 0:
        deployments["p-median"] = p_median(city, space).sites
    print(f"\n{best.capitalize()} by {objective.label} ({objective.evaluator} hypercube, {capacity}): {run.message}.")
    if idle > 0:
        print(f"The p-median is left out: {idle} of the units do not improve it, so their sites would be arbitrary.")
    for name, sites in deployments.items():
        print(f"  {name:10}", _counted(city.site_names[k] for k in sites))
    largest = max(map(len, deployments.values()))
    common = "approximate" if largest > max(EXACT_UP_TO, space.units) else objective.evaluator
    for evaluator in dict.fromkeys([common, "approximate"]):
        table = evaluate_table(city, deployments, threshold=threshold, evaluator=evaluator, capacity=capacity)
        print(f"\n{evaluator} hypercube:\n{table.T.round(4).to_string()}")
    found = {name: evaluate(city, sites, common, capacity=capacity) for name, sites in deployments.items()}
    return found


def print_gain(objective: Objective, found: dict[str, Evaluation], threshold: float) -> IntArray | None:
    """Print what the best deployment gains over today's, and the best single move; return the latter, if it is less.

    None if the best deployment is one move away, or the fleet or its constraints are not today's.
    """
    (_, today), (name, best), *_ = found.items()
    space = objective.space
    same = len(today.sites) == len(best.sites)
    counts = [space.group_counts(e.sites) for e in (today, best)]
    more = counts[1] - counts[0]
    moved = int(np.maximum(more, 0).sum())
    names = [objective.city.site_names[k] for k in np.unique(space.city.twin_groups, return_index=True)[1]]
    print(f"\n{gain(today, best, name, threshold)}")
    if same and moved:
        taken, given = ((names[k] for k in np.repeat(np.arange(len(more)), np.maximum(m, 0))) for m in (-more, more))
        print(f"{moved} of {len(today.sites)} units move.\n  from {_counted(taken)}\n  to {_counted(given)}")
        if empty := [names[k] for k in np.flatnonzero((counts[0] > 0) & (counts[1] == 0))]:
            print(f"  without a unit then: {_counted(empty)}")
    if moved < 2 or not same or today.sites not in space:
        return None
    near = space.neighbours(today.sites)
    single = near[objective.values(near).argmin()]
    change = space.group_counts(single) - counts[0]
    left, taken = names[change.argmin()], names[change.argmax()]
    if objective(single) >= objective(today.sites):
        print("No single move is a gain: units would have to move together.")
        return None
    print(f"The best single move, {left} to {taken}: {_gained(today, objective.evaluation(single), threshold)}.")
    return single


def gain(today: Evaluation, new: Evaluation, name: str, threshold: float) -> str:
    """Return a sentence that says what a deployment gains over today's."""
    if sorted(today.site_names) == sorted(new.site_names):
        return f"Today's deployment is the {name}: no unit needs another station."
    units = f" ({len(new.sites)} units instead of {len(today.sites)})" if len(new.sites) != len(today.sites) else ""
    return f"Gain of the {name} over today{units}: {_gained(today, new, threshold)}."


def _gained(today: Evaluation, new: Evaluation, threshold: float) -> str:
    """Return what a deployment gains in mean response and in late responses."""
    minutes = today.mean_response - new.mean_response
    late = [e.late_fraction(threshold) for e in (today, new)]
    return (
        f"{minutes:+.3f} min of mean response ({today.mean_response:.3f} to {new.mean_response:.3f}), "
        f"{100 * (late[0] - late[1]):+.2f} points of responses of {threshold:g} min or more ({late[0]:.2%} to "
        f"{late[1]:.2%})"
    )


def _counted(names: Iterable[str]) -> str:
    """Return names separated by commas, with the number of those that occur several times."""
    return ", ".join(name if n == 1 else f"{name} x {n}" for name, n in Counter(names).items())


def draw(objective: Objective, found: dict[str, Evaluation], out: Path) -> list[Path]:
    """Write a map and a figure of the deployments; return the files written.

    Neither is written if the city has no coordinates, and only the map if Matplotlib is not installed.
    """
    from ..maps.deployments import deployment_map

    city = objective.city
    if city.atom_locations is None or city.site_locations is None:
        print("\nNo map and no figure: the city has no coordinates (lon, lat or x, y of atoms and sites).")
        return []
    value = "response" if objective.metric == "mean_response" else cast("tuple[str, float]", objective.metric)
    written = [deployment_map(city, found, value=value).save(out / "deployments.html")]
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        print("\nNo figure: pip install 'emsopt[maps]'.")
        return written
    from ..plots import deployments

    with matplotlib.rc_context({"text.parse_math": False}):  # print dollar signs in names literally
        figure, _ = deployments(city, found, Figure(), value=value)  # pyplot would keep the figure in memory
        png = BytesIO()
        figure.savefig(png, dpi=150, format="png")
    return [*written, write_file(out / "deployments.png", png.getvalue())]
