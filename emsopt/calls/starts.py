"""Tell from the drives of a log whether its units start from the stations of a table.

Three signs of a wrong table are added up; a sum of `MOST` or more refuses it.

- Times hardly grow with distance: the fitted speed in units of `SPEED`.
- Drives fit better if units start elsewhere. A drive to a place at distance d and in direction e from its station takes
  a + b d minutes; if it starts at a point that lies δ from the station, about b e · δ less. A regression with a term
  e · δ for every station says how far the stations seem displaced; neighbours of missing ones seem so too. The sign is
  the displacement, corrected for chance, as a share of the median distance of the drives.
- Where the log names units, the middle of the calls of a unit lies far from every station, in units of their spread,
  corrected for chance. `ASIDE` is usual, as units stand in for busy neighbours.

The limits were chosen on drawn logs (`benchmarks/verdict.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from .._types import FloatArray, IntArray
    from .calibration import Fit

KM_PER_DEGREE = 111.19
MOST, SPEED, ASIDE, WEIGHT = 1.0, 90.0, 0.4, 1.5  # SPEED in km/h; WEIGHT of the sign of units
LEAST_DRIVES, FEWEST = 600, 12  # drives in all, and drives of a station or calls of a unit that counts
CAP = 0.975  # quantile of the minutes above which drives count as no longer
FEWEST_PLACES = 5  # that can show a step
NEAR_KM = 0.3  # shorter distances have no clear direction
COARSE, COARSEST_KM = (0.1, 0.05, 0.02), 1.5  # steps (degrees) of rounded places that are looked for


def starts(fit: Fit) -> tuple[bool, str]:
    """Return whether units start from the stations of a fit, and why: a sentence.

    Where the drives are too few, or places are too coarse, the answer is False, and the sentence says so.
    """
    scale = KM_PER_DEGREE * np.array([np.cos(np.radians(fit.stations["lat"].mean())), 1])
    points, places = fit.stations[["lon", "lat"]].to_numpy(float) * scale, fit.calls.locations * scale
    drives, cannot = fit.drives, "Cannot tell where units start:"
    if len(drives) < LEAST_DRIVES:
        return False, f"{cannot} that needs {LEAST_DRIVES} drives, and there are {len(drives)}."
    for what, where in (("calls", places), ("stations", points)):
        if (km := KM_PER_DEGREE * _step(where / scale)) > COARSEST_KM:
            return False, f"{cannot} places of {what} are rounded to {km:.1f} km."
    station = drives["station"].to_numpy()
    apart = places[drives["call"]] - points[station]
    if np.bincount(station).max() < FEWEST:
        return False, f"{cannot} that needs {FEWEST} drives of a station."
    displaced, typical = _displacement(drives["minutes"].to_numpy(float), apart, station)
    per_km = drives["distance"].sum() / np.hypot(*apart.T).sum()  # minutes at free flow, if there are roads
    slope = min(law.per_distance.value for law in (fit.law, fit.answer_law))
    speed = 60 / max(slope * per_km, 1e-3)
    signs = {
        f"the drives show a speed of {speed:,.0f} km/h": speed / SPEED,
        f"they fit best with starts that are displaced by {displaced:.1f} km, where half of the drives are under "
        f"{typical:.1f} km": displaced / typical,
    }
    if "unit" in fit.calls.details and (aside := _aside(fit.calls.details["unit"], places, points)) is not None:
        text = f"the middle of a unit's calls is {aside:.2f} of their spread away from the closest station"
        signs[text] = WEIGHT * max(aside - ASIDE, 0)
    if sum(signs.values()) < MOST:
        return True, f"Units start from the stations: {', and '.join(signs)}."
    found = ", and ".join(sorted(signs, key=lambda text: -signs[text])[:2])
    return False, f"Most probably stations are missing from the table, or units do not start from them: {found}."


def _displacement(minutes: FloatArray, apart: FloatArray, station: IntArray) -> tuple[float, float]:
    """Return how far stations seem displaced, and the median distance of the drives, both km.

    ``apart`` are the km east and north from the station to the call of each drive, shape (K, 2).
    """
    enough = np.bincount(station) >= FEWEST
    minutes, kept = np.minimum(minutes, np.quantile(minutes, CAP)), enough[station]
    minutes, apart, station = minutes[kept], apart[kept], (np.cumsum(enough) - 1)[station[kept]]
    km, drive = np.hypot(*apart.T), np.arange(len(minutes))
    weight = 1 / np.maximum(np.polyval(np.polyfit(km, minutes, 1), km), 1)
    terms = np.zeros((len(km), 2 + 2 * enough.sum()))
    terms[:, 0], terms[:, 1] = 1, km
    for side in (0, 1):
        terms[drive, 2 + 2 * station + side] = apart[:, side] / np.maximum(km, NEAR_KM)
    terms *= weight[:, None]
    inverse = np.linalg.pinv(terms.T @ terms)
    found = inverse @ terms.T @ (weight * minutes)
    influence = (terms * (weight * minutes - terms @ found)[:, None]) @ inverse
    squared = (found**2 - (influence**2).sum(axis=0))[2:].reshape(-1, 2).sum(axis=1)
    mean = np.average(squared, weights=np.bincount(station))
    return float(np.sqrt(max(mean, 0)) / max(found[1], 1e-3)), max(float(np.median(km)), 1e-3)


def _aside(units: pd.Series, places: FloatArray, points: FloatArray) -> float | None:
    """Return how far the middles of the calls of units are from the closest station, in units of their spread."""
    far, calls = [], []
    for rows in units.groupby(units).indices.values():
        if len(rows) >= FEWEST:
            middle = np.median(places[rows], axis=0)
            spread = max(float(np.median(np.hypot(*(places[rows] - middle).T))), NEAR_KM)
            squared = ((points - middle) ** 2).sum(axis=1).min() - 2.25 * spread**2 / len(rows)
            far.append(np.sqrt(max(squared, 0)) / spread)
            calls.append(len(rows))
    return float(np.average(far, weights=calls)) if far else None


def _step(degrees: FloatArray) -> float:
    """Return the step (degrees) to which places are rounded, 0 if to none of `COARSE`."""
    for step in COARSE if len(np.unique(degrees, axis=0)) >= FEWEST_PLACES else ():
        steps = (degrees - degrees[0]) / step
        if (np.abs(steps - np.round(steps)) < 1e-6).mean() > CAP:
            return step
    return 0.0
