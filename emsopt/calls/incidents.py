"""Join the rows of a log that are about one incident: a row per unit, per status of a unit, or per patient.

Rows are joined if they have the same number of an incident, lie within `LONGEST` of each other and at the same place
within `WIDEST_KM`: numbers may restart every day, stand for a type of call or be shared by two services. Rows of the
same unit are its statuses or its patients; other rows are further units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numba import njit

from . import _roles, _times

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Times

LONGEST, LONGEST_STATUS, SHORTEST = 2 * 3600.0, 12 * 3600.0, 600.0  # seconds between rows, also if names come back
WIDEST_KM = 0.5
MOST_INCIDENTS = 3  # of one name; with more, it is not that of an incident
MOST_UNITS = 10  # rows per incident, on average


class Joined(NamedTuple):
    """Which rows are kept, and what they take from the others.

    ``kept`` are positions in order of time, shape (K,); ``times`` the first times of their incidents; ``stamps`` their
    columns of stamps; ``units`` the number of units, NaN if rows do not tell; ``apart`` the longest time (min) and
    distance (km) between the first row of an incident and another.
    """

    kept: IntArray
    times: Times
    stamps: pd.DataFrame
    units: FloatArray
    apart: tuple[float, float]


def join_rows(
    names: pd.Series[str],
    times: Times,
    places: FloatArray,
    stamps: pd.DataFrame,
    units: pd.Series[str] | None,
    per_unit: bool,
    statuses: bool,
) -> Joined:
    """Join the rows of each incident.

    Parameters
    ----------
    names : Series of str, shape (K,)
        Names of the incidents; rows without one are incidents of their own.
    times : ndarray of datetime64[s], shape (K,)
        In ascending order.
    places : ndarray, shape (K, 2)
    stamps : DataFrame
        Some of the stamps of `_roles.STAMPS`.
    units : Series of str, shape (K,), or None
    per_unit : bool
        Whether rows without the name of a unit are units.
    statuses : bool
        Whether rows are statuses.
    """
    code = pd.factorize(names.to_numpy())[0]  # -1 for None
    code = np.where(code < 0, code.max(initial=-1) + 1 + np.arange(len(code)), code)
    incident = _incidents(code, times, places, LONGEST_STATUS if statuses else LONGEST)
    if not statuses and len(np.unique(incident)) * MOST_UNITS < len(code):
        incident = np.arange(len(code))
    _, first, incident = np.unique(incident, return_index=True, return_inverse=True)
    unit = np.arange(len(code)) if per_unit else np.full(len(code), -1)
    if units is not None:
        unit = np.where(units.notna(), len(code) + pd.factorize(units.to_numpy())[0], unit)
    stamps, whose = stamps.reset_index(drop=True), [incident, unit]
    if len(first) < len(code):
        stamps = pd.DataFrame(
            {r: stamps[r].groupby(whose).transform("max" if r == "cleared" else "min") for r in stamps}, stamps.index
        )
    sent = pd.Series(unit[unit >= 0]).groupby(incident[unit >= 0]).nunique()
    unknown = np.nan if units is None and not per_unit else 1.0
    count: FloatArray = sent.reindex(range(len(first)), fill_value=unknown).to_numpy().astype(float)
    # the first unit on scene; without any, the first row with a stamp
    on_scene = stamps["on_scene"].to_numpy() if "on_scene" in stamps else times
    on_scene = np.where(np.isnat(on_scene), _times.LATEST, on_scene)
    order = np.lexsort((np.arange(len(code)), stamps.isna().all(axis=1), on_scene, incident))
    kept = order[np.unique(incident[order], return_index=True)[1]]
    kept = kept[np.argsort(times[first], kind="stable")]
    late, far = (times - times[first][incident]).astype(float) / 60, _km(places) - _km(places)[first][incident]
    apart = float(late.max(initial=0)), float(np.hypot(*far.T).max(initial=0))
    return Joined(kept, times[first][incident[kept]], stamps.iloc[kept], count[incident[kept]], apart)


def _incidents(code: IntArray, times: Times, places: FloatArray, longest: float) -> IntArray:
    """Return the first row of the incident of each row, shape (K,)."""
    by_name = np.argsort(code, kind="stable")
    seconds, (x, y) = times.astype(np.int64)[by_name].astype(float), _km(places)[by_name].T
    limit = np.full(len(code), longest)
    for _ in range(2):
        incident = _chain(code[by_name], seconds, x, y, limit)
        often = np.bincount(code[by_name], incident == np.arange(len(code))) > MOST_INCIDENTS
        limit[often[code[by_name]]] = SHORTEST if longest == LONGEST else longest
    found = np.empty(len(code), dtype=np.int64)
    found[by_name] = by_name[incident]
    return found


@njit(cache=True, nogil=True)
def _chain(code: IntArray, seconds: FloatArray, x: FloatArray, y: FloatArray, longest: FloatArray) -> IntArray:
    """Return the first row to which rows of the same code, close in time (s) and place (km), lead from each row."""
    incident = np.arange(len(code))
    for i in range(len(code)):
        j = i - 1
        while j >= 0 and code[j] == code[i] and seconds[i] - seconds[j] <= longest[i]:
            if (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 <= WIDEST_KM**2:
                incident[i] = incident[j]
                break
            j -= 1
    return incident


def _km(places: FloatArray) -> FloatArray:
    """Return places on a plane that keeps short distances, in km, shape (K, 2)."""
    lon, lat = places.T
    return 111.2 * np.column_stack([lon * np.cos(np.radians(lat)), lat])


def stamps_of_statuses(statuses: pd.Series[str], when: Times) -> pd.DataFrame:
    """Return the stamps that rows of one status each record, one column per stamp that occurs."""
    roles = statuses.map({word: _roles.stamp_of(word) for word in statuses.dropna().unique()}).to_numpy()
    found = {role: np.where(roles == role, when, np.datetime64("NaT", "s")) for role in _roles.STAMPS}
    return pd.DataFrame({role: stamps for role, stamps in found.items() if not np.isnat(stamps).all()})
