"""Static maps of deployments, the counterparts of the interactive maps in `emsopt.maps`."""

from textwrap import wrap

import numpy as np

from ..errors import InputError
from ..maps import _shading
from ._style import new_figure, styled

WIDEST_LINE = 3.5  # points, for a station that answers all calls of an atom


@styled
def deployment(city, evaluation=None, ax=None, *, value="response", limits=None, min_fraction=0.02, title=None):
    """Draw a static map of a deployment, the counterpart of `emsopt.maps.deployment_map`.

    Atoms are shaded. A square is a station with its number of units and its share of all calls, and the width
    of a line shows the share of the atom's calls that the station answers (the papers' Figure 4).

    Parameters
    ----------
    city : City
        Needs ``atom_locations`` and ``site_locations``; ``atom_shapes`` are used if available.
    evaluation : Evaluation, optional
        Default: only demand and candidate sites.
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
    headline = city.name if evaluation is None else f"{city.name}: mean response {evaluation.mean_response:.2f} min"
    axes[0].set_title(headline if title is None else title)
    return fig, axes[0]


@styled
def deployments(city, evaluations, ax=None, *, value="response", limits=None, min_fraction=0.02):
    """Draw several deployments side by side with the same colour scale.

    Parameters
    ----------
    city : City
    evaluations : dict of str to Evaluation
        Evaluations by name; the names become titles.
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
    """Draw a map per evaluation with a common colour scale, one legend and the city's notes."""
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
    """Return the figure, ``count`` axes and the axes of the colour bar.

    New axes are placed explicitly, because automatic layouts leave gaps around axes of fixed aspect.
    """
    low, high, aspect = _extent(city)
    width = 7.4 if count == 1 else 6.2
    height = float(np.clip(width * aspect * (high[1] - low[1]) / (high[0] - low[0]), 2.5, 8.5))
    notes = 0.2 * len(_wrapped(city.notes, count * width))
    left, top, gap, right, bottom = 0.15, 0.45, 0.3, 1.15, 0.42 + notes
    inches = np.array([left + count * width + (count - 1) * gap + right, bottom + height + top])
    fig = new_figure(ax, inches, "none")
    if fig is None:
        axes = np.ravel(ax)
        if len(axes) != count:
            raise InputError(f"`ax` must hold one Axes for each of the {count} evaluations; got {len(axes)}.")
        return axes[0].figure, axes, {"ax": list(axes)}

    def axes_at(*box):
        return fig.add_axes(tuple(np.array(box) / np.tile(inches, 2)))

    maps = np.array([axes_at(left + k * (width + gap), bottom, width, height) for k in range(count)])
    return fig, maps, {"cax": axes_at(inches[0] - right + 0.15, bottom + 0.1 * height, 0.2, 0.8 * height)}


def _classes(values, edges):
    """Return a colour map and norm with the classes of the interactive map."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colours = _shading.colours(len(edges) - 1)
    finite = values[np.isfinite(values)]
    below, above = bool((finite < edges[0] - 1e-9).any()), bool((finite > edges[-1] + 1e-9).any())
    inner = slice(int(below), len(colours) - int(above))  # the outer classes become the open ends
    cmap = ListedColormap(colours[inner]).with_extremes(under=colours[0], over=colours[-1], bad=_shading.MISSING)
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
        ax.scatter(*city.atom_locations.T, s=np.maximum(sizes, 8), c=colours, edgecolors="#555", linewidths=0.6)
    _, places = _shading.stations(city)
    counts = np.zeros(len(places), dtype=int)
    if evaluation is not None:
        at, counts, fractions = _shading.by_place(city, evaluation)
        i, j = np.nonzero(fractions >= max(min_fraction, 1e-12))
        drawn = fractions[i, j]
        segments = np.stack([places[i], city.atom_locations[j]], axis=1)
        opaque = np.tile(to_rgba(_shading.LINES), (len(drawn), 1))
        thinness = _shading.line_thinness(city)
        opaque[:, 3] = thinness * (0.3 + 0.55 * drawn)
        ax.add_collection(
            LineCollection(segments, colors=opaque, linewidths=thinness * _width(drawn), zorder=3, capstyle="round")
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
            # Holes need the opposite orientation to stay open, which some files ignore.
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
    """Return the corners of a map in coordinate units, and the height of a unit of y in units of x."""
    points = [city.atom_locations, city.site_locations]
    points += [_path(shape).vertices for shape in city.atom_shapes or ()]
    points = np.concatenate(points)
    low, high = points.min(axis=0), points.max(axis=0)
    aspect = 1 / np.cos(np.radians((low[1] + high[1]) / 2)) if city.geographic else 1.0
    least = 0.0005 if city.geographic else 0.05  # a city of one point still needs an extent
    margin = max(0.04 * (high - low).max(), least) / np.array([1, aspect])
    return low - margin * (1, 3), high + margin, aspect


def _frame(ax, city):
    """Set equal axes around the city and replace the ticks by a scale bar."""
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
    # "datalim" fills the available space and works with layouts; auto=True lets it widen these limits.
    ax.set_aspect(aspect, adjustable="datalim")
    ax.set_xlim(low[0], high[0], auto=True)
    ax.set_ylim(low[1], high[1], auto=True)


def _wrapped(notes, inches):
    """Return the wrapped lines of the city's notes at font size 9."""
    return wrap(notes, max(40, int(inches * 14)))


def _map_legend(axes, city, *, lines):
    """Draw the legend of symbols and the notes on the data below a map."""
    from matplotlib.lines import Line2D

    square = {"marker": "s", "linestyle": "none"}
    handles = [Line2D([], [], color="white", markeredgecolor="#222", markersize=6, **square)]
    labels = ["vacant site" if lines else "candidate site"]
    if lines:
        handles.insert(0, Line2D([], [], color="#111", markersize=12, **square))
        labels.insert(0, "station: units, share of calls")
        for share in (0.1, 0.5, 1):
            handles.append(Line2D([], [], color=_shading.LINES, linewidth=_shading.line_thinness(city) * _width(share)))
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
