"""Maps of where agents drove on a road network, for notebooks or as one HTML file, that work offline.

The colour and width of an edge show in how many rounds it was driven. A slider selects the edges driven up to a round,
a list selects the agent, and a broad band marks the path without regret.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pandas as pd

from ..bandits import NavigationRun
from ..errors import InputError, _validate
from ..roads import RoadNetwork
from . import _colours
from ._page import PAGE_HEIGHT, Page, delta_encode

Visits: TypeAlias = NavigationRun | pd.DataFrame | dict[str, NavigationRun | pd.DataFrame]

# The palest colours would be invisible among the roads.
VISIT_CLASSES: list[dict[str, Any]] = [
    {"from": 1, "text": "1", "colour": _colours.SEQUENTIAL_COLOURS[2], "weight": 2},
    {"from": 2, "text": "2 to 5", "colour": _colours.SEQUENTIAL_COLOURS[3], "weight": 2.5},
    {"from": 6, "text": "6 to 20", "colour": _colours.SEQUENTIAL_COLOURS[4], "weight": 3},
    {"from": 21, "text": "21 to 100", "colour": _colours.SEQUENTIAL_COLOURS[5], "weight": 4},
    {"from": 101, "text": "more than 100", "colour": _colours.SEQUENTIAL_COLOURS[6], "weight": 5},
]
"""Classes of visits: lower limit, label, colour and width."""


def exploration_map(
    net: RoadNetwork,
    visits: Visits,
    *,
    route: tuple[int | str, int | str] | None = None,
    best: Iterable[int | str] | None = None,
    rounds: int | None = None,
) -> Page:
    """Draw a map of the road edges that agents drove, how often, and from which round on.

    It displays in a notebook, and its ``save(path)`` writes one HTML file. Raise InputError if the network has no
    polylines, a table lacks a column or has an unknown edge, or an option is invalid. The counterpart in matplotlib is
    `emsopt.plots.exploration`.

    Parameters
    ----------
    net : RoadNetwork
        Needs polylines.
    visits : NavigationRun, DataFrame, or dict of str to either
        For each agent, by name: its run, or a table with columns ``edge``, ``first_round`` (the round in which the
        agent first drove the edge) and ``visits`` (the number of rounds in which it did), as in `NavigationRun.visits`
        and the stored study "navigation_exploration".
    route : (int or str, int or str), optional
        First and last edge, marked A and B.
    best : array_like, optional
        Edges of the best path, by index or id, such as `NavigationRun.best_path`.
    rounds : int, optional
        Last round on the slider. Default, and smallest value allowed: the last round in which an agent drove an edge
        for the first time.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(4, 4, jitter=0.2, rng=0)
    >>> run = eo.bandits.run(net, "r0c0-r0c1", "r3c2-r3c3", "gp-ts", horizon=10, rng=0)
    >>> shown = eo.maps.exploration_map(net, {"gp-ts": run})
    """
    named = gather_visits(net, visits)
    ends, path = edges_to_mark(net, route, best)
    last = max([1, *(int(frame["first_round"].max()) for frame in named.values() if len(frame))])
    rounds = last if rounds is None else _validate.whole_number(rounds, "rounds", last)  # or some would never appear
    scale = 100_000 if net.geographic else 1  # to units of about a metre: 1e-5 degrees, or metres on a plane
    names = {"edges": "edge", "since": "first_round", "visits": "visits"}
    scene = {
        "title": f"{net.name[:1].upper()}{net.name[1:]}: where agents drove",
        "notes": net.notes,
        "net": {
            "plane": not net.geographic,
            "scale": scale,
            "ids": list(net.ids),
            "courses": [delta_encode(line, scale) for line in net.polylines or ()],  # differences are short to write
        },
        "classes": VISIT_CLASSES,
        "route": [[text, edge, text == "B"] for text, edge in zip("AB", ends, strict=False)],
        "best": path,
        "rounds": rounds,
    }
    columns = {name: {key: frame[column].tolist() for key, column in names.items()} for name, frame in named.items()}
    return Page("roads", scene, [{"name": name, **view} for name, view in columns.items()], PAGE_HEIGHT)


def edges_to_mark(
    net: RoadNetwork, route: Iterable[int | str] | None, best: Iterable[int | str] | None
) -> tuple[list[int], list[int]]:
    """Return the indices of the two ends of a route and of the edges of the best path; each is empty if None."""
    ends = [] if route is None else net.edges(list(route), "route").tolist()
    if len(ends) not in (0, 2):
        raise InputError(f"`route` must be two edges, the first and the last; got {len(ends)} edges.")
    return ends, [] if best is None else net.edges(best, "best").tolist()


def gather_visits(net: RoadNetwork, visits: Visits) -> dict[str, pd.DataFrame]:
    """Return the table of visits of each agent, with edges by index; raise if an edge or the polylines are missing."""
    if net.polylines is None:
        raise InputError(
            f"{net.name!r} has no polylines to draw. Read the network from a map, or create the "
            "RoadNetwork with `polylines`."
        )
    if not isinstance(visits, dict):
        visits = {getattr(visits, "policy", "agent"): visits}
    if not visits:
        raise InputError("`visits` must hold at least one agent; got none.")
    named = {}
    for name, frame in visits.items():
        # a table's attribute `visits` is its column
        table: Any = getattr(frame, "visits", frame) if hasattr(frame, "history") else frame
        _validate.check_columns(table, ("edge", "first_round", "visits"), f"visits[{name!r}]")
        named[str(name)] = table.assign(edge=net.edges(table["edge"].to_numpy(), f"visits[{name!r}]['edge']"))
    return named
