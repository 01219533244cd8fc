"""``emsopt``: find the best deployment of St. Paul, compared with the papers, or of a saved city."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._files.atomic import write_file
from .._files.formats import table_text
from ..errors import InputError
from . import _shared

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from ..evaluators.evaluation import Evaluation
    from ..evaluators.objective import Objective

ST_PAUL_UNITS = 9


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--city", metavar="FOLDER", help="folder written by City.save (default: St. Paul)")
    parser.add_argument("--units", type=int, metavar="P", help="fleet size (default: 9 for St. Paul)")
    parser.add_argument("--load", type=float, metavar="RHO", help="rescale calls to this load per unit")
    _shared.add_fleet_options(parser)


def run(options: Namespace) -> None:
    """Find the optimum, print tables, and write a map and a figure."""
    from ..city.city import City
    from ..datasets import load_st_paul

    city = load_st_paul() if options.city is None else City.load(options.city)
    units = ST_PAUL_UNITS if options.city is None and options.units is None else options.units
    if units is None:
        raise InputError("missing option: --units P (fleet size).")
    if options.load is not None:
        city = city.with_offered_load(options.load, units)

    _shared.solve(city, units, options, [options.city], partial(_write_tables, options))


def _write_tables(options: Namespace, objective: Objective, found: dict[str, Evaluation], out: Path) -> Iterator[Path]:
    """Write map and figure; print and write the optimum against offered load. Yields the files written.

    For St. Paul under the settings of "Optimizing Server Locations in Spatial Queues", the values in that paper are
    printed alongside, and a second table shows the optimum against service rate.
    """
    from ..datasets import paper_table
    from ..evaluators.metrics import metric_label
    from ..planning.sweeps import load_sweep, service_rate_sweep

    yield from _shared.draw(objective.city, objective.metric, found, out)
    space, metric, capacity = objective.space, objective.metric, objective.options["capacity"]
    loads, rates = paper_table(1).set_index("offered_load"), paper_table(3).set_index("mu_per_day")
    queue = capacity == "queue"
    # The papers report St. Paul with nine units, lost calls, one unit per listed site and the original load.
    other = queue or options.colocate or options.metric == "late" or options.pinned or options.closed
    paper = options.city is None and space.units == ST_PAUL_UNITS and options.load is None and not other
    settled = [load for load in loads.index if load < 1 or not queue]
    progress = _shared.progress("loads")
    by_load = load_sweep(space.city, space, settled, metric=metric, capacity=capacity, progress=progress)
    label = metric_label(metric)
    title = f"{label[0].upper()}{label[1:]} against offered load, approximate hypercube, {capacity}"
    _print_table(title, by_load, (loads, "second version, Table 1") if paper else None)
    yield write_file(out / "by_load.csv", table_text(by_load, index=True))
    if paper:
        by_rate = service_rate_sweep(space.city, space, rates.index, progress=_shared.progress("service rates"))
        title = "Mean response (min) against service rate (calls per day), approximate hypercube, loss"
        _print_table(title, by_rate, (rates, "first version, Table 3"))
        yield write_file(out / "by_service_rate.csv", table_text(by_rate, index=True))


def _print_table(title: str, ours: pd.DataFrame, theirs: tuple[pd.DataFrame, str] | None) -> None:
    """Print a table; if ``theirs`` gives a table of the papers and its source, print its values alongside."""
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
