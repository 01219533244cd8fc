"""``emsopt``: find the best deployment of St. Paul, compared with the papers, or of a saved city."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .._files.atomic import write_file
from .._files.formats import table_text
from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..datasets import load_st_paul, paper_table
from ..errors import InputError
from ..errors._validate import positive_number
from ..evaluators import Evaluation, p_median
from ..evaluators.by_name import evaluate
from ..evaluators.metrics import metric_label
from ..evaluators.objective import Objective
from . import _output

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

ST_PAUL_UNITS = 9


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--city", metavar="FOLDER", help="folder written by City.save (default: St. Paul)")
    parser.add_argument("--units", type=int, metavar="P", help="fleet size (default: 9 for St. Paul)")
    parser.add_argument("--load", type=float, metavar="RHO", help="rescale calls to this load per unit")
    _output.add_fleet_options(parser)


def run(options: Namespace) -> None:
    """Find and print the optimum, and write a map, a figure and tables."""
    start = time.perf_counter()
    city = load_st_paul() if options.city is None else City.load(options.city)
    units = ST_PAUL_UNITS if options.city is None and options.units is None else options.units
    if units is None:
        raise InputError("missing option: --units P (fleet size).")
    if options.load is not None:
        city = city.with_offered_load(options.load, units)
    positive_number(options.threshold, "threshold", "min")
    print_city(city, units)
    space = DeploymentSpace(city, units, colocation=options.colocate, pinned=options.pinned, closed=options.closed)
    metric = ("late", options.threshold) if options.metric == "late" else "mean_response"
    objective = Objective(city, space, options.evaluator, metric, capacity=options.capacity)
    out = _output.results_folder(options.out, [options.city])
    found = find_deployments(objective, options.threshold)
    _output.write_results(out, _write_tables(options, objective, found, out), start)


def print_city(city: City, units: int) -> None:
    """Print the city's size, load, mean times (min) and notes, and a warning if these times are impossible."""
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

    ``threshold`` is the response time (min) from which a call is late. An optimum that is not proven is named "best
    found".
    """
    from ..planning.advice import names_with_counts
    from ..planning.steps import find_best
    from ..planning.sweeps import evaluate_table

    city, space, capacity = objective.city, objective.space, objective.options["capacity"]
    best, sites, how = find_best(objective, progress=_output.progress_option("search, starts"))
    idle = space.units - int((space.capacities > 0).sum())
    deployments = {best: sites}
    if idle <= 0:
        deployments["p-median"] = p_median(city, space).sites
    print(f"\n{best.capitalize()} by {objective.label} ({how}).")
    if idle > 0:
        print(f"The p-median is left out: {idle} of the units do not improve it, so their sites would be arbitrary.")
    for name, sites in deployments.items():
        print(f"  {name:10}", names_with_counts(city.site_names[k] for k in sites))
    for evaluator in dict.fromkeys([objective.evaluator, "approximate"]):
        table = evaluate_table(city, deployments, threshold=threshold, evaluator=evaluator, capacity=capacity)
        print(f"\n{evaluator} hypercube:\n{table.T.round(4).to_string()}")
    return {name: evaluate(city, sites, objective.evaluator, capacity=capacity) for name, sites in deployments.items()}


def _write_tables(options: Namespace, objective: Objective, found: dict[str, Evaluation], out: Path) -> Iterator[Path]:
    """Write a map, a figure and a table of the optimum by offered load, which is also printed; yield their paths.

    For St. Paul with the settings of "Optimizing Server Locations in Spatial Queues", the paper's values are printed
    too, and a second table has the optimum by service rate.
    """
    from ..planning.sweeps import load_sweep, service_rate_sweep

    yield from _output.draw_deployments(objective.city, objective.metric, found, out)
    space, metric, capacity = objective.space, objective.metric, objective.options["capacity"]
    loads, rates = paper_table(1).set_index("offered_load"), paper_table(3).set_index("mu_per_day")
    queue = capacity == "queue"
    # The papers report St. Paul with nine units, lost calls, one unit per listed site and the original load.
    other = queue or options.colocate or options.metric == "late" or options.pinned or options.closed
    paper = options.city is None and space.units == ST_PAUL_UNITS and options.load is None and not other
    settled = [load for load in loads.index if load < 1 or not queue]
    progress = _output.progress_option("loads")
    by_load = load_sweep(space.city, space, settled, metric=metric, capacity=capacity, progress=progress)
    label = metric_label(metric)
    title = f"{label[0].upper()}{label[1:]} against offered load, approximate hypercube, {capacity}"
    _print_table(title, by_load, (loads, "second version, Table 1") if paper else None)
    yield write_file(out / "by_load.csv", table_text(by_load, index=True))
    if paper:
        by_rate = service_rate_sweep(space.city, space, rates.index, progress=_output.progress_option("service rates"))
        title = "Mean response (min) against service rate (calls per day), approximate hypercube, loss"
        _print_table(title, by_rate, (rates, "first version, Table 3"))
        yield write_file(out / "by_service_rate.csv", table_text(by_rate, index=True))


def _print_table(title: str, ours: pd.DataFrame, theirs: tuple[pd.DataFrame, str] | None) -> None:
    """Print a table and, in further columns, a paper's values if ``theirs``, its table and source, is given."""
    table = ours.filter(["optimum", "p_median", "lower_bound"])
    if theirs is not None:
        papers, source = theirs
        columns = {"optimum_min": "optimum", "p_median_min": "p_median", "upper_bound_min": "p_median"}
        table = table.join(papers.filter(list(columns)).rename(columns=columns).add_suffix(" (paper)"))
        title += f"; paper: {source}"
    if not ours["found"].str.contains("proven").all():
        table = table.rename(columns={"optimum": "best found"})
    digits = 2 if "lower_bound" in ours else 4  # for minutes, or for a fraction
    print(f"\n{title}\n{table.round(digits).to_string()}")
