"""Common parts of the commands: options, progress, the folder of results, map and figure."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from argparse import ArgumentParser
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from .._files.atomic import make_folder, write_file
from ..city.city import HOURS_A_YEAR, City
from ..errors import InputError
from ..errors._types import Progress
from ..evaluators.evaluation import LATE_MIN, Evaluation
from ..evaluators.metrics import Metric

# All files that the commands write (earlier versions: back_test.html). Those of an earlier run would mislead.
RESULT_FILES = ("deployments.html", "deployments.png", "by_load.csv", "by_service_rate.csv", "checks.csv",
                "profile.csv", "report.html", "back_test.html", "recorded.csv", "calibration.csv", "deployments.csv",
                "scenarios.csv", "gains_by_atom.csv", "worse.csv", "plan.csv", "plan_moves.csv",
                "sheet.html")  # fmt: skip
PROGRESS_INTERVAL_S = 15.0  # seconds between lines of progress, which stay on the screen


def add_fleet_options(parser: ArgumentParser) -> None:
    """Add the options that two commands share: objective, evaluator, rules for the sites, and folder of results."""
    add = parser.add_argument
    late = "responses from MIN minutes on are late (default: %(default)g)"
    add("--threshold", type=float, default=LATE_MIN, metavar="MIN", help=late)
    metric = "objective: mean response (default) or the fraction of late responses"
    add("--metric", choices=["response", "late"], default="response", help=metric)
    add("--evaluator", choices=["exact", "approximate"], help="default: exact for up to 12 units")
    queue: dict[str, Any] = {"dest": "capacity", "action": "store_const", "const": "queue", "default": "loss"}
    add("--queue", help="calls wait when all units are busy (default: they are lost)", **queue)
    add("--colocate", action="store_true", help="allow several units at a site")
    for name, what in (("--pinned", "keep a unit (name a site twice to keep two)"), ("--closed", "get no unit")):
        add(name, nargs="+", action="extend", default=[], metavar="SITE", help=f"names of sites that {what}")
    add("--out", default="emsopt-results", metavar="FOLDER", help="folder for results (default: %(default)s)")


def write_results(out: Path, files: Iterable[Path], start: float) -> None:
    """Iterate over ``files``, which writes them; then delete results of earlier runs, and print names and seconds.

    An interrupt does not prevent that for the files written so far. ``start`` is a time by `time.perf_counter`.
    """
    written: list[Path] = []
    try:
        written.extend(files)
    finally:
        if written:
            for stale in {out / name for name in RESULT_FILES} - set(written):
                stale.unlink(missing_ok=True)
            names = wrap_text(", ".join(path.name for path in written))
            print(f"\nAfter {time.perf_counter() - start:.0f} s, written to {out.resolve()}:\n{names}")


def wrap_text(text: str) -> str:
    """Wrap a sentence at 118 characters; return a text of several lines, such as a table, unchanged."""
    return text if "\n" in text else textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)


def progress_option(task: str) -> Progress:
    """Return the ``progress`` option of a task: True for a bar in a terminal, else a function that prints to stderr."""
    if sys.stderr.isatty():
        return True
    start = last = time.monotonic()

    def show(done: int, total: int | None) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= PROGRESS_INTERVAL_S:
            last = now
            of = "" if total is None else f" of {total:,}"
            print(f"emsopt: {task}: {done:,}{of} after {now - start:.0f} s", file=sys.stderr, flush=True)

    return show


def results_folder(name: str, inputs: list[str | None]) -> Path:
    """Create and return the folder for results; raise if an input is or lies in this folder or its folder ``city``."""
    out = make_folder(name, "--out")
    for path in filter(None, inputs):
        holder = path if os.path.isdir(path) else os.path.dirname(os.path.realpath(path))
        if os.path.realpath(holder) in (os.path.realpath(out), os.path.realpath(out / "city")):
            raise InputError(
                f"`--out` must not be the folder of the input {path}: results could replace it. Name another."
            )
    return out


def draw_deployments(
    city: City, metric: Metric, found: dict[str, Evaluation], out: Path, hours: float = HOURS_A_YEAR
) -> list[Path]:
    """Write a map and a figure of the deployments; return the files written.

    ``hours`` is the number of hours per year with the city's call rates. Without coordinates nothing is written, and
    without Matplotlib only the map.
    """
    from ..maps.deployments import deployment_map

    if city.atom_locations is None or city.site_locations is None:
        print("\nNo map and no figure: the city has no coordinates (lon, lat or x, y of atoms and sites).")
        return []
    value = "response" if metric == "mean_response" else cast("tuple[str, float]", metric)
    written = [deployment_map(city, found, value=value, hours_a_year=hours).save(out / "deployments.html")]
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from PIL import Image
    except ImportError:
        print("\nNo figure: pip install 'emsopt[maps]'.")
        return written
    from ..plots import deployments

    with matplotlib.rc_context({"text.parse_math": False}):  # print dollar signs in names literally
        figure, _ = deployments(city, found, Figure(), value=value)  # pyplot would keep the figure in memory
        drawn, png = BytesIO(), BytesIO()
        figure.savefig(drawn, dpi=150, format="png")
    # Sixty-four colours, as many as are seen, take a quarter of the space.
    Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(png, format="png", optimize=True)
    return [*written, write_file(out / "deployments.png", png.getvalue())]
