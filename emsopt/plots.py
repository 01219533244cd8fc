"""Figures of deployments and of how methods compare, in one style.

Every function returns ``(fig, ax)`` and takes ``ax=None``. Left out, the figure comes from pyplot, so that a
notebook shows it and a script can close it. Passed an empty ``matplotlib.figure.Figure``, it is sized and filled
without pyplot, which is what widgets and servers want. Passed an ``Axes``, that is drawn on. Nothing is computed
here beyond the medians and quartiles of what is drawn: evaluations and frames come from elsewhere.

``STYLE`` is the look of them all, for ``matplotlib.pyplot.style.use(emsopt.plots.STYLE)``. Shading and colours are
those of the interactive maps (`emsopt.maps`), distinguishable by colour-blind readers.
"""

from functools import wraps
from textwrap import wrap

import numpy as np

from . import _shading, _validate
from .errors import InputError

STYLE = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.2,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
}
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), "-", (0, (5, 1.5)), (0, (1, 1.2)))
WIDEST_LINE = 3.5  # points, of a station that answers all calls of an atom


def _styled(draw):
    """Run a drawing function under the common style."""

    @wraps(draw)
    def wrapper(*args, **kwargs):
        import matplotlib as mpl

        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return wrapper


def _figure(ax, size):
    """Return figure and axes: the caller's, or new ones that a notebook shows."""
    fig = _new_figure(ax, size, "constrained")
    return (ax.figure, ax) if fig is None else (fig, fig.add_subplot())


def _new_figure(ax, size, layout):
    """Return a figure to fill, or None if the caller passed axes to draw on."""
    from matplotlib.figure import Figure

    if isinstance(ax, Figure):
        ax.set_size_inches(*size)
        ax.set_layout_engine(layout)
        return ax
    if ax is None:
        from matplotlib import pyplot as plt

        return plt.figure(figsize=tuple(size), layout=layout)
    return None


# -- maps ---------------------------------------------------------------------------------------------------------


@_styled
def deployment(
    city, evaluation=None, ax=None, *, value="response", limits=None, min_fraction=0.02, title=None
):
    """Draw a deployment as a map: the still twin of `emsopt.maps.deployment_map`.

    Atoms are shaded, a square is a station with its number of units and its share of all calls, and a line is
    as wide as the share of the atom's calls that the station answers (the papers' Figure 4).

    Parameters
    ----------
    city : City
        With ``atom_locations`` and ``site_locations``; ``atom_shapes`` are used where there are any.
    evaluation : Evaluation, optional
        Left out: demand and candidate sites only.
    ax : matplotlib Axes or empty Figure, optional
    value, limits, min_fraction
        As for `emsopt.maps.deployment_map`.
    title : str, optional
        Default: the city's name and the mean response.

    Returns
    -------
    fig, ax
    """
    named = {"": None} if evaluation is None else _shading.named_evaluations(city, evaluation)
    fig, axes = _maps(city, named, ax, value, limits, min_fraction)
    headline = (
        city.name if evaluation is None else f"{city.name}: mean response {evaluation.mean_response:.2f} min"
    )
    axes[0].set_title(headline if title is None else title)
    return fig, axes[0]


@_styled
def deployments(city, evaluations, ax=None, *, value="response", limits=None, min_fraction=0.02):
    """Draw several deployments side by side, shaded alike.

    Parameters
    ----------
    city : City
    evaluations : dict of str to Evaluation
        By name, which becomes the title.
    ax : sequence of matplotlib Axes or empty Figure, optional
        One Axes for each evaluation.
    value, limits, min_fraction
        As for `emsopt.maps.deployment_map`.

    Returns
    -------
    fig, axes
        ``axes`` is an array, shape (len(evaluations),).
    """
    named = _shading.named_evaluations(city, evaluations)
    fig, axes = _maps(city, named, ax, value, limits, min_fraction)
    for panel, (name, evaluation) in zip(axes, named.items(), strict=True):
        panel.set_title(f"{name}: mean response {evaluation.mean_response:.2f} min")
    return fig, axes


def _maps(city, named, ax, value, limits, min_fraction):
    """Draw a map of each evaluation with one scale of colours, one legend and the city's notes."""
    from matplotlib.cm import ScalarMappable

    _shading.require_locations(city)
    shaded = [_shading.atom_values(city, evaluation, value) for evaluation in named.values()]
    values = np.concatenate([v for v, *_ in shaded])
    cmap, norm, extend = _classes(values, _shading.class_edges(*_shading.limits_of([values], limits)))
    fig, axes, where = _map_axes(ax, city, len(named))
    for panel, evaluation, (own, *_) in zip(axes, named.values(), shaded, strict=True):
        _map(panel, city, evaluation, own, cmap, norm, min_fraction)
    _, label, unit = shaded[0]
    bar = fig.colorbar(ScalarMappable(norm, cmap), extend=extend, extendfrac=0.08, **where)
    bar.set_label(f"{label} ({unit})")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.ax.grid(visible=False)
    _map_legend(axes, city, lines=any(evaluation is not None for evaluation in named.values()))
    return fig, axes


def _map_axes(ax, city, count):
    """Return figure, ``count`` axes and where the colour bar goes.

    New ones are placed by hand: automatic layouts leave gaps around axes of fixed aspect.
    """
    low, high, aspect = _extent(city)
    width = 7.4 if count == 1 else 6.2
    height = float(np.clip(width * aspect * (high[1] - low[1]) / (high[0] - low[0]), 2.5, 8.5))
    notes = 0.2 * len(_wrapped(city.notes, count * width))
    left, top, gap, right, bottom = 0.15, 0.45, 0.3, 1.15, 0.42 + notes
    inches = np.array([left + count * width + (count - 1) * gap + right, bottom + height + top])
    fig = _new_figure(ax, inches, "none")
    if fig is None:
        axes = np.ravel(ax)
        if len(axes) != count:
            msg = f"`ax` must hold one Axes for each of the {count} evaluations; got {len(axes)}."
            raise InputError(msg)
        return axes[0].figure, axes, {"ax": list(axes)}

    def axes_at(*box):
        return fig.add_axes(tuple(np.array(box) / np.tile(inches, 2)))

    maps = np.array([axes_at(left + k * (width + gap), bottom, width, height) for k in range(count)])
    return fig, maps, {"cax": axes_at(inches[0] - right + 0.15, bottom + 0.1 * height, 0.2, 0.8 * height)}


def _classes(values, edges):
    """Return colour map and norm with the same classes as the interactive map."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colours = _shading.colours(len(edges) - 1)
    finite = values[np.isfinite(values)]
    below, above = bool((finite < edges[0] - 1e-9).any()), bool((finite > edges[-1] + 1e-9).any())
    inner = slice(int(below), len(colours) - int(above))  # the outer classes become the open ends
    cmap = ListedColormap(colours[inner]).with_extremes(
        under=colours[0], over=colours[-1], bad=_shading.MISSING
    )
    inner_edges = edges[int(below) : len(edges) - int(above)]
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    return cmap, BoundaryNorm(inner_edges, cmap.N), extend[below, above]


def _map(ax, city, evaluation, values, cmap, norm, min_fraction):
    """Draw shading, lines and stations of one deployment."""
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.colors import to_rgba

    colours = cmap(norm(np.ma.masked_invalid(values)))
    if city.atom_shapes:
        paths = [_path(shape) for shape in city.atom_shapes]
        ax.add_collection(PathCollection(paths, facecolors=colours, edgecolors="white", linewidths=0.8))
    else:
        sizes = 450 * min(1, 100 / city.n_atoms) * city.demand_shares / city.demand_shares.max()
        ax.scatter(
            *city.atom_locations.T, s=np.maximum(sizes, 8), c=colours, edgecolors="#555", linewidths=0.6
        )
    which, places = _shading.stations(city)
    counts = np.zeros(len(places), dtype=int)
    if evaluation is not None:
        at = which[evaluation.sites]
        counts = np.bincount(at, minlength=len(places))
        fractions = np.zeros((len(places), city.n_atoms))
        np.add.at(fractions, at, evaluation.dispatch_fractions)
        i, j = np.nonzero(fractions >= max(min_fraction, 1e-12))
        drawn = fractions[i, j]
        segments = np.stack([places[i], city.atom_locations[j]], axis=1)
        opaque = np.tile(to_rgba(_shading.LINES), (len(drawn), 1))
        thinness = _shading.line_thinness(city)
        opaque[:, 3] = thinness * (0.3 + 0.55 * drawn)
        ax.add_collection(
            LineCollection(
                segments, colors=opaque, linewidths=thinness * _width(drawn), zorder=3, capstyle="round"
            )
        )
        shares = np.bincount(at, weights=evaluation.unit_shares, minlength=len(places))
        for place in np.flatnonzero(counts):
            _station(ax, places[place], counts[place], shares[place])
    vacant = places[counts == 0]
    ax.scatter(*vacant.T, marker="s", s=34, c="white", edgecolors="#222", linewidths=1.5, zorder=4)
    _frame(ax, city)


def _width(fraction):
    return 0.4 + (WIDEST_LINE - 0.4) * fraction


def _path(shape):
    """Return a GeoJSON Polygon or MultiPolygon as one path, holes included."""
    from matplotlib.path import Path

    polygons = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
    paths = []
    for polygon in polygons:
        for k, ring in enumerate(polygon):
            x, y = corners = np.asarray(ring, dtype=float)[:, :2].T
            clockwise = x[:-1] @ y[1:] < x[1:] @ y[:-1]
            # Holes must run the other way round to stay open, which not every file heeds.
            paths.append(Path(corners.T if clockwise == (k > 0) else corners.T[::-1], closed=True))
    return Path.make_compound_path(*paths)


def _station(ax, place, units, share):
    """Draw a black square with the number of units, and the station's share of all calls below it."""
    from matplotlib.patheffects import withStroke

    ax.plot(*place, marker="s", markersize=14, color="#111", markeredgecolor="white", zorder=5)
    ax.annotate(
        str(units),
        place,
        color="white",
        ha="center",
        va="center_baseline",
        fontsize=10,
        weight="bold",
        zorder=6,
    )
    ax.annotate(
        f"{share:.0%}",
        place,
        xytext=(0, -9),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=10,
        zorder=6,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )


def _extent(city):
    """Corners of what a map shows, in units of the coordinates, and the height of a unit of y in units of x."""
    points = [city.atom_locations, city.site_locations]
    points += [_path(shape).vertices for shape in city.atom_shapes or ()]
    points = np.concatenate(points)
    low, high = points.min(axis=0), points.max(axis=0)
    aspect = 1 / np.cos(np.radians((low[1] + high[1]) / 2)) if city.geographic else 1.0
    least = 0.0005 if city.geographic else 0.05  # a city of one point still needs some room
    margin = max(0.04 * (high - low).max(), least) / np.array([1, aspect])
    return low - margin * (1, 3), high + margin, aspect


def _frame(ax, city):
    """Fit the axes to the city, true to scale, with a scale bar in place of ticks."""
    low, high, aspect = _extent(city)
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    km = 111.2 / aspect if city.geographic else 1  # of one unit of x
    wide = high[0] - low[0]
    wanted = 0.22 * wide * km
    power = 10.0 ** np.floor(np.log10(wanted))
    length = power * max(f for f in (1, 2, 5) if f * power <= wanted)
    left, y = low[0] + 0.03 * wide, low[1] + 0.03 * wide / aspect
    ax.plot([left, left + length / km], [y, y], color="#222", linewidth=2, solid_capstyle="butt", zorder=7)
    ax.annotate(
        f"{length:g} km",
        (left + length / km, y),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=10,
        zorder=7,
    )
    # "datalim" fills the room there is, which layouts cope with; auto=True allows it to widen these limits.
    ax.set_aspect(aspect, adjustable="datalim")
    ax.set_xlim(low[0], high[0], auto=True)
    ax.set_ylim(low[1], high[1], auto=True)


def _wrapped(notes, inches):
    """Lines of the city's notes at font size 9."""
    return wrap(notes, max(40, int(inches * 14)))


def _map_legend(axes, city, *, lines):
    """Explain the symbols below a map, and say what a reader must know about the data."""
    from matplotlib.lines import Line2D

    square = {"marker": "s", "linestyle": "none"}
    handles = [Line2D([], [], color="white", markeredgecolor="#222", markersize=6, **square)]
    labels = ["vacant site" if lines else "candidate site"]
    if lines:
        handles.insert(0, Line2D([], [], color="#111", markersize=12, **square))
        labels.insert(0, "station: units, share of calls")
        for share in (0.1, 0.5, 1):
            handles.append(
                Line2D([], [], color=_shading.LINES, linewidth=_shading.line_thinness(city) * _width(share))
            )
            labels.append(f"{share:.0%}")
        labels[-1] += " of an atom's calls"
    ax, dpi = axes[0], axes[0].figure.dpi
    wide = [panel.get_window_extent().width / dpi for panel in axes]
    ax.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        ncols=len(handles) if wide[0] > 5.5 else 2,
        fontsize=10,
        columnspacing=1.1,
        handletextpad=0.5,
        borderaxespad=0.2,
    )
    if city.notes:
        ax.annotate(
            "\n".join(_wrapped(city.notes, sum(wide))),
            (0, 0),
            xycoords="axes fraction",
            xytext=(4, -25 if wide[0] > 5.5 else -58),
            textcoords="offset points",
            va="top",
            fontsize=9,
            color="#444",
            annotation_clip=False,
        )


# -- curves -------------------------------------------------------------------------------------------------------


@_styled
def load_sweep(frame, ax=None, *, label="Mean response (min)"):
    """Draw how several deployments fare as the load, or something else, grows (the papers' Tables 1 and 3).

    Parameters
    ----------
    frame : DataFrame
        A row a load, as `emsopt.sweeps.load_sweep` returns it: the index is the offered load a unit, and every
        column of numbers is a line named after it. Names with "bound" in them are dashed in grey. An index
        named otherwise labels the axis with its own name.
    ax : matplotlib Axes or empty Figure, optional
    label : str
        What the lines are, with unit.

    Returns
    -------
    fig, ax
    """
    lines = frame.select_dtypes("number")
    if lines.empty:
        msg = f"there is nothing to draw: the frame has {len(frame)} rows and no column of numbers."
        raise InputError(msg)
    loads = lines.index.to_numpy(dtype=float)
    fig, ax = _figure(ax, (8, 5))
    for k, name in enumerate(lines.columns):
        bound = "bound" in str(name)
        ax.plot(
            loads,
            lines[name],
            label=_words(name),
            color="#777" if bound else _shading.CATEGORIES[k % 7],
            linestyle="--" if bound else DASHES[k % 7],
            marker="" if len(loads) > 25 or bound else "o",
            markersize=6,
        )
    if loads.min() > 0 and loads.max() / loads.min() > 50:
        ax.set_xscale("log")
    ax.set(xlabel=_axis_label(frame.index.name), ylabel=label)
    ax.legend()
    return fig, ax


def _axis_label(name):
    known = {
        None: "Offered load a unit, ρ = λ / (p μ)",
        "offered_load": "Offered load a unit, ρ = λ / (p μ)",
        "service_rate_per_day": "Service rate of a unit, μ (calls a day)",
    }
    return known.get(name) or _words(name).capitalize()


@_styled
def convergence(runs, ax=None, *, band="quartiles", reference=None, label="Best mean response so far (min)"):
    """Draw the best value found against the number of evaluations.

    Parameters
    ----------
    runs : dict of str to runs, or runs
        One run or a list of them, each an optimizer's result or its history (a DataFrame with the best so far in
        ``best`` and the number of evaluations in ``evaluations``, left out if every row is one). Or an array of
        the best so far after each evaluation, shape (T,) or, for several runs, (R, T). Of several the median is
        drawn; a run that ended early keeps its last value.
    ax : matplotlib Axes or empty Figure, optional
    band : {"quartiles", "range", None}
        What is shaded around the median of several runs.
    reference : dict of str to float, optional
        Levels to compare with, such as ``{"optimum": 5.87, "lower bound": 5.33}``.
    label : str
        What is drawn, with unit.

    Returns
    -------
    fig, ax
    """
    if band is not None:
        _validate.choice(band, "band", ("quartiles", "range"))
    named = runs if isinstance(runs, dict) else {"": runs}
    table = {str(name): _runs(values, name) for name, values in named.items()}
    fig, ax = _figure(ax, (8, 5))
    for k, (name, (steps, values)) in enumerate(table.items()):
        look = {"color": _shading.CATEGORIES[k % 7]}
        title = f"{name} ({len(values)} runs)" if len(values) > 1 else name
        ax.step(
            steps,
            np.median(values, axis=0),
            where="post",
            linestyle=DASHES[k % 7],
            label=title or None,
            **look,
        )
        if band is not None and len(values) > 1:
            low, high = np.percentile(values, (25, 75) if band == "quartiles" else (0, 100), axis=0)
            ax.fill_between(steps, low, high, step="post", alpha=0.18, linewidth=0, **look)
    for name, level in (reference or {}).items():
        ax.axhline(level, color="#555", linewidth=1.2, linestyle=":")
        ax.annotate(
            f"{name} {level:.3g}",
            (0, level),
            xycoords=("axes fraction", "data"),
            xytext=(4, 2),
            textcoords="offset points",
            va="bottom",
            fontsize=10,
            color="#444",
        )
    ax.set(xlabel="Evaluations", ylabel=label)
    ax.set_xlim(left=min(steps[0] for steps, _ in table.values()))
    ax.xaxis.get_major_locator().set_params(integer=True)
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return fig, ax


def _runs(values, name):
    """Return the numbers of evaluations, shape (T,), and the best so far of each run there, shape (R, T)."""
    frames = [
        getattr(run, "history", run) for run in (values if isinstance(values, (list, tuple)) else [values])
    ]
    if not frames or not all(hasattr(frame, "columns") for frame in frames):
        array = np.atleast_2d(np.asarray(values, dtype=float))
        if array.ndim != 2 or array.size == 0:
            msg = f"the runs of {name!r} must have shape (T,) or (R, T); got {np.shape(values)}."
            raise InputError(msg)
        return np.arange(1, array.shape[1] + 1), array
    steps, best = [], []
    for frame in frames:
        _require_columns(frame, ("best",))
        counts = frame["evaluations"] if "evaluations" in frame else np.arange(1, len(frame) + 1)
        steps.append(np.asarray(counts, dtype=float))
        best.append(np.asarray(frame["best"], dtype=float))
    if min(map(len, steps)) == 0:
        msg = f"a history of {name!r} is empty."
        raise InputError(msg)
    first = max(count[0] for count in steps)  # from where every run has a value
    common = np.unique(np.concatenate(steps))
    common = common[common >= first]
    rows = [b[np.searchsorted(count, common, side="right") - 1] for count, b in zip(steps, best, strict=True)]
    return common, np.array(rows)


@_styled
def response_distribution(evaluations, ax=None, *, thresholds=(6, 8, 10)):
    """Draw which share of calls waits longer than any time.

    Parameters
    ----------
    evaluations : Evaluation or dict of str to Evaluation
    ax : matplotlib Axes or empty Figure, optional
    thresholds : sequence of float
        Minutes to mark; the shares there are printed for up to six.

    Returns
    -------
    fig, ax
    """
    named = _shading.named_evaluations(None, evaluations)
    thresholds = np.sort(np.asarray(thresholds, dtype=float).ravel())
    longest = max(float(e.percentile(99.9)) for e in named.values())
    end = 1.05 * max([longest, *thresholds])
    times = np.linspace(0, end, 600)
    fig, ax = _figure(ax, (8, 5))
    for threshold in thresholds:
        ax.axvline(threshold, color="#999", linewidth=1, linestyle=":")
    for k, (name, evaluation) in enumerate(named.items()):
        share, look = 100 * evaluation.late_fraction(times), {"color": _shading.CATEGORIES[k % 7]}
        ax.plot(times, share, linestyle=DASHES[k % 7], drawstyle="steps-post", label=name, **look)
        ax.plot(thresholds, 100 * evaluation.late_fraction(thresholds), "o", markersize=6, **look)
    ax.xaxis.get_major_locator().set_params(steps=[1, 2, 5, 10], integer=True)
    ax.set(
        xlabel="Response time t (min)",
        ylabel="Calls answered in t or later (%)",
        xlim=(0, end),
        ylim=(0, 103),
    )
    if len(named) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(named), borderaxespad=0.2)
    if 0 < thresholds.size <= 6:
        _late_table(ax, named, thresholds)
    return fig, ax


def _late_table(ax, named, thresholds):
    """Print the shares at the thresholds in the empty upper right corner."""
    late = [[f"{100 * share:.1f}%" for share in e.late_fraction(thresholds)] for e in named.values()]
    wide, high = 0.085 * len(thresholds), 0.075 * (1 + len(named))
    table = ax.table(
        late,
        rowLabels=list(named) if len(named) > 1 else None,
        colLabels=[f"{threshold:g} min" for threshold in thresholds],
        bbox=(1 - wide, 0.98 - high, wide, high),
        edges="open",
        cellLoc="right",
        zorder=4,
    )
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    for cell in table.get_celld().values():
        cell.PAD = 0.05


# -- bars, boxes, and the correction factor -----------------------------------------------------------------------


@_styled
def utilization(evaluations, ax=None):
    """Draw how busy the units are, station by station.

    Parameters
    ----------
    evaluations : Evaluation or dict of str to Evaluation
        Stations without a unit in one of them have no bar there; colocated units have a bar each.
    ax : matplotlib Axes or empty Figure, optional

    Returns
    -------
    fig, ax
    """
    named = _shading.named_evaluations(None, evaluations)
    bars = {}  # (site, how many units came before it there) -> {evaluation: utilisation}
    names = {}
    for name, evaluation in named.items():
        seen = {}
        for site, title, busy in zip(
            evaluation.sites.tolist(), evaluation.site_names, evaluation.utilizations, strict=True
        ):
            seen[site] = seen.get(site, 0) + 1
            bars.setdefault((site, seen[site]), {})[name] = float(busy)
            names[site, seen[site]] = title if seen[site] == 1 else f"{title} ({seen[site]})"
    rows = sorted(bars)
    fig, ax = _figure(ax, (8, 1.4 + 0.3 * len(rows) * max(1, 0.75 * len(named))))
    thickness = 0.8 / len(named)
    for k, name in enumerate(named):
        places = [
            row + (k - (len(named) - 1) / 2) * thickness for row, key in enumerate(rows) if name in bars[key]
        ]
        busy = [100 * bars[key][name] for key in rows if name in bars[key]]
        ax.barh(places, busy, 0.9 * thickness, color=_shading.CATEGORIES[k % 7], label=name)
        mean = 100 * float(named[name].utilizations.mean())
        ax.axvline(mean, color=_shading.CATEGORIES[k % 7], linestyle=DASHES[k % 7], linewidth=1.3)
    ax.set_yticks(range(len(rows)), [names[key] for key in rows])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="Time busy (%); line: mean of the fleet", xlim=(0, None))
    if len(named) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(named), borderaxespad=0.2)
    return fig, ax


@_styled
def approximation_error(
    frame, ax=None, *, load="utilization", group="geometry", error="error_min", claimed=0.002
):
    """Draw boxes of the error of the approximate hypercube by load and kind of city (the papers' Figure 7).

    Parameters
    ----------
    frame : DataFrame
        A row a city: ``load`` (its unit in the column's name or a plain fraction), ``group`` and ``error``
        (minutes; absolute, or with sign).
    ax : matplotlib Axes or empty Figure, optional
    load, group, error : str
        Columns.
    claimed : float or None
        Error that the papers report, min, as a line.

    Returns
    -------
    fig, ax
    """
    from matplotlib.patches import Patch

    _require_columns(frame, (load, group, error))
    loads, groups = sorted(frame[load].unique()), list(dict.fromkeys(frame[group]))
    fig, ax = _figure(ax, (8, 5))
    wide = 0.8 / len(groups)
    for k, kind in enumerate(groups):
        colour = _shading.CATEGORIES[k % 7]
        samples = [frame.loc[(frame[load] == x) & (frame[group] == kind), error].to_numpy() for x in loads]
        filled = [(x, sample) for x, sample in enumerate(samples) if len(sample)]
        ax.boxplot(
            [sample for _, sample in filled],
            positions=[x + (k - (len(groups) - 1) / 2) * wide for x, _ in filled],
            widths=0.8 * wide,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": colour, "alpha": 0.55, "edgecolor": colour},
            medianprops={"color": "black", "linewidth": 1.6},
            whiskerprops={"color": colour, "linewidth": 1.3},
            capprops={"color": colour, "linewidth": 1.3},
            flierprops={"marker": ".", "markersize": 5, "markeredgecolor": colour},
        )
    handles = [
        Patch(color=_shading.CATEGORIES[k % 7], alpha=0.55, label=str(g)) for k, g in enumerate(groups)
    ]
    if claimed is not None:
        handles.append(
            ax.axhline(claimed, color="#333", linestyle="--", linewidth=1.3, label=f"papers: {claimed:g} min")
        )
    ax.set_xticks(range(len(loads)), [f"{x:g}" for x in loads])
    ax.set(xlabel=_words(load).capitalize(), ylabel="Error of the mean response (min)")
    if (frame[error] >= 0).all():
        ax.set_ylabel("Absolute error of the mean response (min)")
    ax.grid(visible=False, axis="x")
    ax.legend(handles=handles)
    return fig, ax


@_styled
def correction_factor(frame, ax=None):
    """Draw the correction factor Q(p, ρ, r) against the number r of busier choices, for several utilisations.

    Parameters
    ----------
    frame : DataFrame, shape (p, K)
        The index is r = 0, 1, ..., p - 1, the number of preferred units that are busy; columns are the
        utilisations ρ.
    ax : matplotlib Axes or empty Figure, optional

    Returns
    -------
    fig, ax
    """
    fig, ax = _figure(ax, (8, 5))
    colours = _shading.colours(len(frame.columns) + 2)[2:]  # the palest would be lost on white
    ax.axhline(1, color="#555", linewidth=1.2, linestyle=":")
    for k, (rho, colour) in enumerate(zip(frame.columns, colours, strict=True)):
        marker = "osD^vPX"[k % 7]
        ax.plot(frame.index, frame[rho], color=colour, marker=marker, markersize=6, label=f"ρ = {rho:g}")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="Preferred units that are busy, r", ylabel="Correction factor Q(p, ρ, r), no unit")
    if frame.to_numpy().min() > 0 and frame.to_numpy().max() > 10 * frame.to_numpy().min():
        ax.set_yscale("log")
        ax.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    ax.legend(title="utilisation")
    return fig, ax


def _require_columns(frame, wanted):
    missing = [name for name in wanted if name not in getattr(frame, "columns", ())]
    if missing:
        has = ", ".join(map(str, getattr(frame, "columns", ()))) or "no columns"
        msg = f"the frame must have a column {missing[0]!r}; it has {has}."
        raise InputError(msg)


def _words(name):
    """Return a column's name as a reader would say it."""
    return str(name).replace("p_median", "p-median").replace("_", " ").replace("utiliz", "utilis")
