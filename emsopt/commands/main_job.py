"""``emsopt``: find the best deployment of St. Paul, compared with the papers, or of a saved city."""

import time

from .._files.writing import write_file
from .._validate import positive_number
from ..errors import InputError
from . import _shared

ST_PAUL_UNITS = 9


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument("--city", metavar="FOLDER", help="folder of a city written by City.save (default: St. Paul)")
    parser.add_argument("--units", type=int, metavar="P", help="fleet size (default: 9 for St. Paul)")
    parser.add_argument(
        "--load",
        type=float,
        metavar="RHO",
        help="rescale the calls to this offered load per unit (default: no rescaling)",
    )
    _shared.add_fleet_options(parser)


def run(options):
    """Find the optimum, print tables, and write a map and a figure."""
    from ..city.city import City
    from ..datasets import load_st_paul

    start = time.perf_counter()
    ours = options.city is None
    city = load_st_paul() if ours else City.load(options.city)
    units = ST_PAUL_UNITS if ours and options.units is None else options.units
    if units is None:
        raise InputError("missing option: --units P (fleet size).")
    if options.load is not None:
        city = city.with_offered_load(options.load, units)
    positive_number(options.threshold, "threshold", "min")
    _shared.describe(city, units)
    objective = _shared.searched(city, units, options)
    out = _shared.results_folder(options.out, options.city)
    found = _shared.find_deployments(objective, options)
    written = _print_tables(city, units, options, out)
    written += _shared.draw(city, found, out, options)
    _shared.say_written(out, written, time.perf_counter() - start)


def _print_tables(city, units, options, out):
    """Print the optimum against load, with the papers' values for St. Paul; return the files written."""
    from ..datasets import paper_table
    from ..evaluators.metrics import metric_label
    from ..planning.sweeps import load_sweep, service_rate_sweep

    rules = _shared.rules(options)
    loads, rates = paper_table(1).set_index("offered_load"), paper_table(3).set_index("mu_per_day")
    # The papers report St. Paul with nine units, lost calls, one unit per listed site and the original load.
    changed = options.load is not None or options.queue or options.colocate
    changed = changed or options.metric == "late" or options.pinned or options.closed
    paper = options.city is None and units == ST_PAUL_UNITS and not changed
    settled = [load for load in loads.index if load < 1 or not options.queue]
    with _shared.Bar("loads") as progress:
        by_load = load_sweep(city, _shared.allowed(city, units, options), settled, progress=progress, **rules)
    label = metric_label(rules["metric"])
    title = f"{label[0].upper()}{label[1:]} against offered load, approximate hypercube, {rules['capacity']}"
    theirs = (loads, "second version, Table 1") if paper else None
    written = [_print_table(title, by_load, theirs, out / "by_load.csv")]
    if paper:
        with _shared.Bar("service rates") as progress:
            by_rate = service_rate_sweep(city, units, rates.index, progress=progress)
        title = "Mean response (min) against service rate (calls per day), approximate hypercube, loss"
        theirs = (rates, "first version, Table 3")
        written.append(_print_table(title, by_rate, theirs, out / "by_service_rate.csv"))
    return written


def _print_table(title, ours, theirs, path):
    table = ours.filter(["optimum", "p_median", "lower_bound"])
    if theirs is not None:
        papers, source = theirs
        columns = {"optimum_min": "optimum", "p_median_min": "p_median", "upper_bound_min": "p_median"}
        table = table.join(papers.filter(columns).rename(columns=columns).add_suffix(" (paper)"))
        title += f"; paper: {source}"
    if not ours["found"].str.contains("proven").all():
        table = table.rename(columns={"optimum": "best found"})
    digits = 2 if "lower_bound" in ours else 4  # minutes, or a fraction
    print(f"\n{title}\n{table.round(digits).to_string()}")
    return write_file(path, ours.to_csv(lineterminator="\n"))
