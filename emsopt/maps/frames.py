"""Return a city and its evaluation as GeoDataFrames or a folium map, to combine with other layers.

`emsopt.maps.deployment_map` is the finished map: smaller, faster and usable offline. This module returns
building blocks: frames for geopandas, and a `folium.Map` that accepts further layers (and downloads Leaflet
and tiles from their servers).
"""

from html import escape

import numpy as np

from ..errors import InputError, MissingDependencyError
from ._shading import colours, require_locations

WGS84 = "EPSG:4326"


def atoms_frame(city, evaluation=None):
    """Return one row per atom: name, calls per hour, and, if evaluated, mean response and main station.

    Parameters
    ----------
    city : City
        Needs ``atom_locations``; geometries are its ``atom_shapes`` if available, else points.
    evaluation : Evaluation, optional

    Returns
    -------
    GeoDataFrame
        In longitude and latitude (EPSG:4326), or without a reference system if the city lies on a plane (km).
    """
    geopandas = _need("geopandas")
    from shapely.geometry import shape

    require_locations(city)
    if city.atom_shapes is None:
        geometry = geopandas.points_from_xy(*city.atom_locations.T)
    else:
        geometry = [shape(s) for s in city.atom_shapes]
    columns = {"name": city.atom_names, "calls_per_hour": city.arrival_rates}
    if evaluation is not None:
        columns |= evaluation.atoms_frame().drop(columns=["atom", "share_of_calls"]).to_dict("list")
    return geopandas.GeoDataFrame(columns, geometry=geometry, crs=WGS84 if city.geographic else None)


def sites_frame(city, evaluation=None):
    """Return one row per candidate site: name, and, if evaluated, units, utilisation and share of calls.

    Parameters
    ----------
    city : City
        Needs ``site_locations``.
    evaluation : Evaluation, optional

    Returns
    -------
    GeoDataFrame
        Points, in the reference system of `atoms_frame`.
    """
    geopandas = _need("geopandas")
    require_locations(city)
    columns = {"name": city.site_names}
    if evaluation is not None:
        units = np.bincount(evaluation.sites, minlength=city.n_sites)
        busy = np.bincount(evaluation.sites, weights=evaluation.utilizations, minlength=city.n_sites)
        columns["units"] = units
        columns["utilization"] = np.divide(busy, units, out=np.full(city.n_sites, np.nan), where=units > 0)
        columns["share_of_calls"] = np.bincount(
            evaluation.sites, weights=evaluation.unit_shares, minlength=city.n_sites
        )
    geometry = geopandas.points_from_xy(*city.site_locations.T)
    return geopandas.GeoDataFrame(columns, geometry=geometry, crs=WGS84 if city.geographic else None)


def folium_map(city, evaluation, *, tiles="OpenStreetMap"):
    """Return a `folium.Map` of a deployment: atoms shaded by mean response, stations, vacant sites.

    Parameters
    ----------
    city : City
        In longitude and latitude.
    evaluation : Evaluation
    tiles : str or None
        Background tiles, by folium's name.

    Returns
    -------
    folium.Map
        With a layer control; add other layers before displaying it.
    """
    folium = _need("folium")
    if not city.geographic:
        msg = f"a folium map needs longitude and latitude, but {city.name!r} lies on a plane. Use maps.deployment_map."
        raise InputError(msg)
    atoms, sites = atoms_frame(city, evaluation).round(2), sites_frame(city, evaluation).round(3)
    ramp = colours(8)
    step = np.digitize(atoms["mean_response_min"], np.quantile(atoms["mean_response_min"], np.arange(1, 8) / 8))
    atoms["colour"] = [ramp[k] for k in step]
    for frame in (atoms, sites):  # folium does not escape texts
        for column in frame.drop(columns="geometry").select_dtypes(exclude="number"):
            frame[column] = [escape(str(text)) for text in frame[column]]
    west, south, east, north = atoms.total_bounds
    result = folium.Map(tiles=tiles, prefer_canvas=True)
    result.fit_bounds([[south, west], [north, east]])
    folium.GeoJson(
        atoms,
        name="mean response (min)",
        marker=folium.CircleMarker(radius=6),
        style_function=lambda feature: {
            "fillColor": feature["properties"]["colour"],
            "fillOpacity": 0.7,
            "color": "white",
            "weight": 1,
        },
        tooltip=folium.GeoJsonTooltip(["name", "calls_per_hour", "mean_response_min", "answered_most_by"]),
    ).add_to(result)
    for label, rows, fill in (
        ("stations", sites[sites["units"] > 0], "black"),
        ("vacant sites", sites[sites["units"] == 0], "white"),
    ):
        if len(rows):
            folium.GeoJson(
                rows,
                name=label,
                marker=folium.CircleMarker(radius=7, color="black", fill_color=fill, fill_opacity=1, weight=1),
                tooltip=folium.GeoJsonTooltip(["name", "units", "utilization", "share_of_calls"]),
            ).add_to(result)
    folium.LayerControl(collapsed=False).add_to(result)
    return result


def _need(name):
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(f"this needs the package {name}: pip install 'emsopt[maps]'.") from error
