"""Common parts of the commands: options, search for deployments, tables, map and figure."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from .._files.atomic import make_folder, write_file
from .._validate import positive_number
from ..errors import InputError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from .._types import Progress
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.metrics import Metric
    from ..evaluators.objective import Objective


# All files that the commands write. Those of an earlier run would mislead beside new ones.
RESULTS = (
    *("deployments.html", "deployments.png", "by_load.csv", "by_service_rate.csv", "checks.csv", "profile.csv"),
    *(
        "report.html",
        "back_test.html",  # of earlier versions
        "recorded.csv",
        "calibration.csv",
        "deployments.csv",
        "scenarios.csv",
        "gains_by_atom.csv",
        "worse.csv",
        "plan.csv",
        "plan_moves.csv",
        "sheet.html",
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
    queue: dict[str, Any] = {"dest": "capacity", "action": "store_const", "const": "queue", "default": "loss"}
    add("--queue", help="calls wait when all units are busy (default: they are lost)", **queue)
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
    """
    from ..city.deployment_space import DeploymentSpace
    from ..evaluators.objective import Objective

    start = time.perf_counter()
    positive_number(options.threshold, "threshold", "min")
    describe(city, units)
    space = DeploymentSpace(city, units, colocation=options.colocate, pinned=options.pinned, closed=options.closed)
    metric = ("late", options.threshold) if options.metric == "late" else "mean_response"
    objective = Objective(city, space, options.evaluator, metric, capacity=options.capacity)
    out = results_folder(options.out, inputs)
    found = find_deployments(objective, options.threshold)
    keep(out, write_tables(objective, found, out), start)


def keep(out: Path, files: Iterable[Path], start: float) -> None:
    """Write files to a folder, remove those of an earlier run, also after an interrupt, and print what was written."""
    written: list[Path] = []
    try:
        written.extend(files)
    finally:
        if written:
            for stale in {out / name for name in RESULTS} - set(written):
                stale.unlink(missing_ok=True)
            names = wrapped(", ".join(path.name for path in written))
            print(f"\nAfter {time.perf_counter() - start:.0f} s, written to {out.resolve()}:\n{names}")


def wrapped(text: str) -> str:
    """Return a sentence in lines that a screen holds, and a table as it is."""
    return text if "\n" in text else textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)


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


def find_deployments(objective: Objective, threshold: float) -> dict[str, Evaluation]:
    """Find and print the optimum and the p-median deployment; return their evaluations by name.

    ``threshold`` is the response time (min) from which a call is late. The optimum is named "best found" unless it is
    proven.
    """
    from ..evaluators import p_median
    from ..evaluators.by_name import evaluate
    from ..planning._advice_in_words import counted
    from ..planning.advice import search
    from ..planning.sweeps import evaluate_table

    city, space, capacity = objective.city, objective.space, objective.options["capacity"]
    best, sites, how = search(objective, progress=progress("search, starts"))
    idle = space.units - int((space.capacities > 0).sum())
    deployments = {best: sites}
    if idle <= 0:
        deployments["p-median"] = p_median(city, space).sites
    print(f"\n{best.capitalize()} by {objective.label} ({how}).")
    if idle > 0:
        print(f"The p-median is left out: {idle} of the units do not improve it, so their sites would be arbitrary.")
    for name, sites in deployments.items():
        print(f"  {name:10}", counted(city.site_names[k] for k in sites))
    for evaluator in dict.fromkeys([objective.evaluator, "approximate"]):
        table = evaluate_table(city, deployments, threshold=threshold, evaluator=evaluator, capacity=capacity)
        print(f"\n{evaluator} hypercube:\n{table.T.round(4).to_string()}")
    return {name: evaluate(city, sites, objective.evaluator, capacity=capacity) for name, sites in deployments.items()}


def draw(city: City, metric: Metric, found: dict[str, Evaluation], out: Path) -> list[Path]:
    """Write a map and a figure of the deployments; return the files written.

    Neither is written if the city has no coordinates, and only the map if Matplotlib is not installed.
    """
    from ..maps.deployments import deployment_map

    if city.atom_locations is None or city.site_locations is None:
        print("\nNo map and no figure: the city has no coordinates (lon, lat or x, y of atoms and sites).")
        return []
    value = "response" if metric == "mean_response" else cast("tuple[str, float]", metric)
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
