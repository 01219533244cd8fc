"""A city and its evaluation as GeoDataFrames or a folium map, to combine with other layers.

`emsopt.maps.deployment_map` is smaller, faster and usable offline; a `folium.Map` accepts further layers, and downloads
Leaflet and tiles from their servers.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.geography import load_extra
from ..city import City
from ..errors import InputError
from ..evaluators import Evaluation
from ._colours import colour_limits, ramp_colours, require_locations

if TYPE_CHECKING:
    import folium
    from geopandas import GeoDataFrame


def atoms_frame(city: City, evaluation: Evaluation | None = None) -> GeoDataFrame:
    """Return one row per atom: name and calls per hour; with an evaluation, also its results for the atom.

    Geometries are the ``atom_shapes`` of the city if available, else its ``atom_locations``, in longitude and latitude
    (EPSG:4326), or without a reference system if the city lies on a plane (km). Sites need locations too.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> len(eo.maps.atoms_frame(city))
    71
    """
    require_locations(city)
    shapes = city.atom_shapes and [load_extra("shapely.geometry").shape(atom) for atom in city.atom_shapes]
    columns: dict[Any, Any] = {"name": city.atom_names, "calls_per_hour": city.arrival_rates}
    if evaluation is not None:
        columns |= evaluation.atoms_frame().drop(columns=["atom", "share_of_calls"]).to_dict("list")
    return _geo_frame(city, columns, city.atom_locations, shapes)


def sites_frame(city: City, evaluation: Evaluation | None = None) -> GeoDataFrame:
    """Return one row per candidate site: its name; with an evaluation, also its units, utilisation and share of calls.

    ``utilization`` is the mean over the units at the site (NaN without a unit), ``share_of_calls`` their share of all
    answered calls. Geometries are points, in the reference system of `atoms_frame`; atoms need locations too.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> len(eo.maps.sites_frame(city))
    17
    """
    require_locations(city)
    columns: dict[str, Any] = {"name": city.site_names}
    if evaluation is not None:
        units, busy, share = (
            np.bincount(evaluation.sites, weights, city.n_sites)  # several units may be at a site
            for weights in (None, evaluation.utilizations, evaluation.unit_shares)
        )
        with np.errstate(invalid="ignore"):  # sites without a unit have no utilisation
            columns |= {"units": units, "utilization": busy / units, "share_of_calls": share}
    return _geo_frame(city, columns, city.site_locations)


def folium_map(city: City, evaluation: Evaluation) -> folium.Map:
    """Return a `folium.Map` of a deployment: atoms shaded by mean response, stations, vacant sites.

    The city must be in longitude and latitude. The map has a layer control.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> result = eo.evaluators.approximate_hypercube(city, [0, 1, 2, 3, 4, 8, 9, 10, 11])
    >>> type(eo.maps.folium_map(city, result)).__name__
    'Map'
    """
    folium = load_extra("folium")
    if not city.geographic:
        lacking = f"{city.name!r} has plane coordinates"
        raise InputError(f"folium needs longitude and latitude, but {lacking}. Use deployment_map.")
    atoms, sites = atoms_frame(city, evaluation).round(2), sites_frame(city, evaluation).round(3)
    minutes = atoms["mean_response_min"]
    edges = colour_limits(minutes.to_numpy())
    atoms["colour"] = np.array(ramp_colours(len(edges) - 1))[np.digitize(minutes, edges[1:-1])]  # inner limits only
    for frame in (atoms, sites):  # folium does not escape texts
        for column in frame.drop(columns="geometry").select_dtypes(exclude="number"):
            frame[column] = [escape(str(text)) for text in frame[column]]
    west, south, east, north = atoms.total_bounds
    result = folium.Map(prefer_canvas=True)  # a canvas draws hundreds of areas faster
    result.fit_bounds([[south, west], [north, east]])  # folium has latitude first
    style = {"fillOpacity": 0.7, "color": "white", "weight": 1}
    folium.GeoJson(
        atoms,
        name="mean response (min)",
        marker=folium.CircleMarker(radius=6),
        style_function=lambda atom: {"fillColor": atom["properties"]["colour"]} | style,
        tooltip=folium.GeoJsonTooltip(["name", "calls_per_hour", "mean_response_min", "answered_most_by"]),
    ).add_to(result)
    occupied = sites["units"] > 0
    for label, rows, fill in (("stations", sites[occupied], "black"), ("vacant sites", sites[~occupied], "white")):
        if len(rows):
            folium.GeoJson(
                rows,
                name=label,
                marker=folium.CircleMarker(radius=7, color="black", fill_color=fill, fill_opacity=1, weight=1),
                tooltip=folium.GeoJsonTooltip(["name", "units", "utilization", "share_of_calls"]),
            ).add_to(result)
    folium.LayerControl(collapsed=False).add_to(result)
    return result


def _geo_frame(city: City, columns: dict[str, Any], points: Any, shapes: Any = None) -> GeoDataFrame:
    """Return a GeoDataFrame of ``columns`` with ``shapes`` as geometry, or ``points`` if there are no shapes."""
    geopandas = load_extra("geopandas")
    geometry = geopandas.points_from_xy(*points.T) if shapes is None else shapes
    return geopandas.GeoDataFrame(columns, geometry=geometry, crs="EPSG:4326" if city.geographic else None)
