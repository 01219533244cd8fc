"""Common parts of the commands: options, search for deployments, tables, map and figure."""

import os
from io import BytesIO

import numpy as np

from .._files.writing import make_folder, write_file
from ..errors import InputError
from ..planning.scenarios import without_formulas

DEFAULT_FOLDER = "emsopt-results"


def add_fleet_options(parser):
    """Add the options of the search."""
    add = parser.add_argument
    add(
        "--threshold",
        type=float,
        default=8.0,
        metavar="MIN",
        help="responses of this many minutes or more are late (default: 8)",
    )
    add(
        "--metric",
        choices=["response", "late"],
        default="response",
        help="objective: mean response (default) or the fraction of late responses",
    )
    add(
        "--evaluator",
        choices=["exact", "approximate"],
        help="default: exact up to 12 units, else approximate",
    )
    add("--queue", action="store_true", help="calls wait when all units are busy (default: they are lost)")
    add("--colocate", action="store_true", help="allow several units at a site")
    for name, what in (("pinned", "keep a unit (once more: another one)"), ("closed", "get none")):
        help_text = f"names of sites that {what}"
        add(f"--{name}", nargs="+", action="extend", default=[], metavar="SITE", help=help_text)
    add("--out", default=DEFAULT_FOLDER, metavar="FOLDER", help=f"default: {DEFAULT_FOLDER}")


def rules(options):
    """Return the options of the search as arguments of `Objective`."""
    return {
        "metric": metric(options),
        "capacity": capacity(options),
    }


def allowed(city, units, options):
    """Return the deployments that are allowed; raise if the fleet does not fit."""
    from ..city import DeploymentSpace

    return DeploymentSpace(city, units, colocation=options.colocate, pinned=options.pinned, closed=options.closed)


def metric(options):
    """Return the metric that is minimised."""
    return ("late", options.threshold) if options.metric == "late" else "mean_response"


def capacity(options):
    """Return what happens to calls that find all units busy."""
    return "queue" if options.queue else "loss"


def results_folder(name, *inputs):
    """Return the folder for results, creating it if necessary; raise if it contains an input.

    Parameters
    ----------
    name : str
    *inputs : str or None
        Input files and folders.
    """
    out = make_folder(name, "--out")
    for path in filter(None, inputs):
        holder = path if os.path.isdir(path) else os.path.dirname(os.path.realpath(path))
        if os.path.realpath(holder) in (os.path.realpath(out), os.path.realpath(out / "city")):
            msg = f"`--out` must not be the folder of the input {path}, which results could replace; got {name}."
            raise InputError(msg)
    return out


def describe(city, units):
    """Print the size and load of the city, with a warning about implausible times."""
    print(
        f"{city.name}: {city.n_atoms} atoms, {city.n_sites} sites, {units} units, {city.total_rate:.2f} calls/h, "
        f"offered load {city.offered_load(units):.3f} per unit (share of time busy if no call were lost)"
    )
    closest = city.response_times.min(axis=0) @ city.demand_shares
    print(
        f"The closest site is {closest:.1f} min away on average; a call takes {city.mean_service_time:.1f} min in all."
    )
    if closest > city.mean_service_time:
        print("This is impossible, because service times include travel. Are all times in minutes?")
    if city.notes:
        print(city.notes)


def searched(city, units, options):
    """Return the `Objective` of the search; raise if the fleet does not fit."""
    from ..evaluators.objective import Objective

    return Objective(city, allowed(city, units, options), options.evaluator, **rules(options))


def find_deployments(objective, options):
    """Find and print the optimum and the p-median deployment; return their evaluations by name."""
    from ..evaluators import p_median
    from ..optimizers import best_deployment
    from ..planning.sweeps import evaluate_table

    city, units = objective.city, objective.units
    with Bar(f"{objective.evaluator} optimum") as progress:
        run = best_deployment(objective, progress=progress)
    space = objective.space
    median = p_median(city, space)
    best = "optimum" if "proven" in run.message else "best found"
    deployments = {best: run.x, "p-median": median.sites}
    print(
        f"\n{best.capitalize()} by {objective.label} ({objective.evaluator} hypercube, {capacity(options)}): {run.message}."
    )
    idle = units - len(np.unique(city.twin_groups[space.site_capacities > 0]))
    if idle > 0:
        print(
            f"{idle} of the units do not improve the p-median, which already covers every place; their "
            "sites are arbitrary."
        )
    for name, sites in deployments.items():
        print(f"  {name:10}", ", ".join(city.site_names[k] for k in sites))
    for evaluator in dict.fromkeys([objective.evaluator, "approximate"]):
        table = evaluate_table(
            city, deployments, threshold=options.threshold, evaluator=evaluator, capacity=capacity(options)
        )
        print(f"\n{evaluator} hypercube:\n{table.T.round(4).to_string()}")
    return {name: objective.evaluation(sites) for name, sites in deployments.items()}


def draw(city, found, out, options):
    """Write a map and a figure of the deployments; return the files written."""
    from ..maps.deployments import deployment_map

    if city.atom_locations is None or city.site_locations is None:
        print("\nNo map and no figure: the city has no coordinates (columns lon, lat or x, y of atoms and sites).")
        return []
    value = "response" if options.metric == "response" else metric(options)
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


def say_written(out, written, seconds):
    """Print the files written and the elapsed time."""
    print(f"\nDone in {seconds:.0f} s. Written to {out.resolve()}:")
    for path in written:
        print(f"  {path.name}")


def write_table(table, path, **options):
    """Write a table for spreadsheets, with texts escaped that look like formulas."""
    return write_file(path, without_formulas(table).to_csv(lineterminator="\n", **options))


class Bar:
    """A progress bar on the terminal; the context yields a ``progress(done, total)`` callback."""

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
