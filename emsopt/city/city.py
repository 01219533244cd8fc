"""`City`: where calls come from, where units may wait, and how long turnout, travel and service take.

=====================  ======  ==========  =====================================================
name                   symbol  shape       meaning
=====================  ======  ==========  =====================================================
``arrival_rates``      λ_j     (M,)        calls per hour from atom j
``travel_times``       t_ij    (N, M)      minutes from site i to atom j
``turnout_times``      τ_i     (N,)        minutes from dispatch until a unit at site i leaves
``service_times``      1/μ_ij  (N, M)      mean minutes from dispatch until the unit is free again
``preference``                 (N, M)      preference of atom j for site i: smaller is preferred
``travel_cv``                  or (N, M)   standard deviation of the travel time over its mean t_ij
``turnout_cv``                 or (N,)     standard deviation of the turnout time over its mean τ_i
=====================  ======  ==========  =====================================================

An *atom* is a small area whose calls are all treated alike; a *site* is a place where units may wait. Variations are
single numbers if they are the same everywhere. They affect late fractions and percentiles, but not mean responses,
dispatch or service times (`emsopt.city.travel`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from .._files.geography import check_shape, positions
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray
from . import tables, travel

HOURS_A_YEAR = 8766.0  # of 365.25 days
MOST_MINUTES = 24 * 60  # longer travel or service times are taken for seconds
LONGEST_TURNOUT_MIN = 15  # longer turnout times, such as 60 and 90, are taken for seconds
# Range of the offered work, in erlangs, in which every evaluator is accurate to at least six digits.
LEAST_ERLANGS, MOST_ERLANGS = 1e-9, 1e9
MOST_CV = 3  # larger coefficients of variation are taken for percent; travel times have about 0.2 to 0.6
SLOWEST_KMH, FASTEST_KMH = 2, 600  # typical speeds beyond which travel times are not in minutes
LONGEST_MEDIAN_MIN = 240  # without coordinates, travel times above are taken for seconds
LONGEST_DISTANCE_KM = 1000  # larger distances come from swapped or wrong coordinates
MOST_SITE_ERLANGS = 500  # largest offered work in erlangs per site; all of New York City needs about 140


@dataclass(frozen=True, eq=False, repr=False)
class City:
    """Demand, candidate sites and times, validated once and then immutable.

    Raise if a value is missing, invalid, of the wrong shape, or apparently in the wrong unit.

    Parameters
    ----------
    arrival_rates : array_like, shape (M,)
        Calls per hour from each atom; at least 0, and not all zero.
    travel_times : array_like, shape (N, M)
        Minutes from each candidate site to each atom, at most 1440.
    turnout_times : array_like, shape (N,), or float
        Minutes from dispatch until the unit leaves, at most 15.
    service_times : array_like, shape (N, M) or (N,), or float
        Mean minutes that a call keeps a unit busy, from dispatch until it is free again, including turnout
        and travel; above 0 and at most 1440.
    preference : array_like, shape (N, M), optional
        Rank or cost of site i for atom j; smaller is preferred, and ties go to the lower index. Default: the
        mean response time.
    travel_cv : array_like, shape (N, M) or (N,), or float
        Coefficient of variation (standard deviation over mean) of the travel times, 0 to 3; they are lognormal. With
        the default, 0, every drive takes the mean time, and late fractions and percentiles are too optimistic.
    turnout_cv : array_like, shape (N,), or float
        Coefficient of variation of the turnout times, likewise.
    atom_names, site_names : sequence of str, optional
        Distinct names.
    atom_locations, site_locations : array_like, shape (M, 2) and (N, 2), optional
        Longitude and latitude in degrees if ``geographic``, else kilometres east and north.
    atom_shapes : sequence of dict, length M, optional
        GeoJSON Polygon or MultiPolygon of each atom, for maps.
    geographic : bool
        Whether locations are in degrees.
    name, notes : str
        Title, and notes on the data for readers of the results.

    Examples
    --------
    >>> city = City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    >>> city.n_sites, city.n_atoms, round(city.offered_load(units=2), 3)
    (2, 2, 1.0)
    """

    arrival_rates: FloatArray
    travel_times: FloatArray
    turnout_times: FloatArray
    service_times: FloatArray
    _: dataclasses.KW_ONLY
    preference: FloatArray | None = None
    travel_cv: float | FloatArray = 0.0
    turnout_cv: float | FloatArray = 0.0
    atom_names: tuple[str, ...] = None  # type: ignore[assignment]  # numbered by default
    site_names: tuple[str, ...] = None  # type: ignore[assignment]
    atom_locations: FloatArray | None = None
    site_locations: FloatArray | None = None
    atom_shapes: tuple[dict[str, Any], ...] | None = None
    geographic: bool = True
    name: str = "city"
    notes: str = ""

    if TYPE_CHECKING:  # the arguments may have more types than the fields, which hold checked values

        def __init__(
            self,
            arrival_rates: ArrayLike,
            travel_times: ArrayLike,
            turnout_times: ArrayLike,
            service_times: ArrayLike,
            *,
            preference: ArrayLike | None = None,
            travel_cv: ArrayLike = 0.0,
            turnout_cv: ArrayLike = 0.0,
            atom_names: Iterable[object] | None = None,
            site_names: Iterable[object] | None = None,
            atom_locations: ArrayLike | None = None,
            site_locations: ArrayLike | None = None,
            atom_shapes: Iterable[object] | None = None,
            geographic: bool = True,
            name: str = "city",
            notes: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        checked = vars(self)  # attributes of a frozen dataclass cannot be assigned
        travel_times = _checked_minutes(self.travel_times, "travel_times", (None, None))
        n_sites, n_atoms = shape = travel_times.shape
        rates = _validate.real_array(self.arrival_rates, "arrival_rates", (None,), unit="calls/h", low=0)
        if len(rates) != n_atoms:
            hint = " It looks transposed: sites are rows." if len(rates) == n_sites else ""
            wanted = f"`travel_times` must have {len(rates)} columns (atoms), one per entry of `arrival_rates`"
            raise InputError(f"{wanted}; got {travel_times.shape}.{hint}")
        turnout = _checked_minutes(self.turnout_times, "turnout_times", (n_sites,), LONGEST_TURNOUT_MIN)
        service = _checked_minutes(self.service_times, "service_times", shape, strictly=True)
        _check_offered_work(rates, service)  # needs both, as neither shows its unit alone
        checked.update(arrival_rates=rates, travel_times=travel_times, turnout_times=turnout, service_times=service)
        checked["travel_cv"] = _variation_coefficients(self.travel_cv, "travel_cv", shape)
        checked["turnout_cv"] = _variation_coefficients(self.turnout_cv, "turnout_cv", (n_sites,))
        if self.preference is not None:
            checked["preference"] = _validate.real_array(self.preference, "preference", shape)
        checked["geographic"] = _validate.as_bool(self.geographic, "geographic")
        for key, n in (("atom", n_atoms), ("site", n_sites)):
            names, places = f"{key}_names", f"{key}_locations"
            checked[names] = _validate.names(checked[names], names, n, key)
            if checked[places] is not None:
                checked[places] = _validate.real_array(checked[places], places, (n, 2))
                if self.geographic:
                    _validate.check_degrees(checked[places], f"`{places}`")
        if self.atom_shapes is not None:
            shapes = _validate.as_tuple(self.atom_shapes, "`atom_shapes`", n_atoms, "GeoJSON geometries")
            checked["atom_shapes"] = shapes
            for k, outline in enumerate(shapes):
                check_shape(outline, f"`atom_shapes`, number {k}", geographic=self.geographic)
        checked["name"] = _validate.visible_text(self.name, "`name`")
        checked["notes"] = _validate.visible_text(self.notes, "`notes`", allowed="\n\r\t")
        _check_time_unit(travel_times, self._measure_unwrapped())  # last, as it needs the checked locations

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copied or unpickled city, with read-only arrays."""
        vars(self).update({key: _freeze(v) if isinstance(v, np.ndarray) else v for key, v in state.items()})

    def _measure_unwrapped(self) -> FloatArray | None:
        """Unwrap longitudes at the date line; return distances (km), (N, M); None unless all places are in degrees."""
        if not self.geographic or self.atom_locations is None or self.site_locations is None:
            return None
        km, lon = travel.great_circle_km(self.site_locations, self.atom_locations), self.site_locations[0, 0]
        if km[0, 0] > LONGEST_DISTANCE_KM:
            hint = "Perhaps latitude and longitude are swapped in one of them; longitude comes first."
            apart = f"{km[0, 0]:.0f} km from the first of `atom_locations`"
            raise InputError(f"the first of `site_locations` is {apart}. {hint}")
        for places in ("atom_locations", "site_locations"):
            vars(self)[places] = _freeze(_validate.unwrap(vars(self)[places], lon))
        furthest = np.abs(self.atom_locations[:, 0]).max()
        if self.atom_shapes is not None and furthest > 170:  # near the date line, which outlines may cross
            vars(self)["atom_shapes"] = tuple(_unwrap_shape(shape, lon) for shape in self.atom_shapes)
        return km

    @property
    def n_sites(self) -> int:
        """Number of candidate sites, N."""
        return self.travel_times.shape[0]

    @property
    def n_atoms(self) -> int:
        """Number of atoms, M."""
        return self.travel_times.shape[1]

    @property
    def total_rate(self) -> float:
        """Calls per hour from the whole city, λ."""
        return float(self.arrival_rates.sum())

    @cached_property
    def demand_shares(self) -> FloatArray:
        """Share of calls from each atom, shape (M,), summing to one."""
        return _freeze(self.arrival_rates / self.arrival_rates.sum())

    @cached_property
    def response_times(self) -> FloatArray:
        """Mean turnout plus travel, τ_i + t_ij, shape (N, M), min."""
        return _freeze(self.turnout_times[:, None] + self.travel_times)

    @cached_property
    def response_law(self) -> travel.ResponseLaw | None:
        """Distribution of turnout plus travel; None if the times do not vary."""
        if not (np.any(self.travel_cv) or np.any(self.turnout_cv)):
            return None
        return travel.ResponseLaw.of(self.turnout_times, self.travel_times, self.turnout_cv, self.travel_cv)

    @cached_property
    def mean_service_time(self) -> float:
        """Mean service time over all sites and atoms, min; atoms are weighted by their demand shares."""
        return float((self.service_times @ self.demand_shares).mean())

    @cached_property
    def preferred_order(self) -> IntArray:
        """Site indices by ``preference`` or, without it, by response time, the most preferred first, shape (M, N).

        Ties go to the lower index, except that interchangeable sites come together, at the place of the first of them.
        """
        key = self.response_times if self.preference is None else self.preference
        groups = np.broadcast_to(self.twin_groups[:, None], key.shape)  # in a tie, twins come together
        return _freeze(np.ascontiguousarray(np.lexsort((groups, key), axis=0).T))  # the last key is sorted by first

    @cached_property
    def preference_ranks(self) -> NDArray[np.unsignedinteger]:
        """Rank of each site for each atom, 0 for the most preferred, shape (N, M), from `preferred_order`."""
        ranks = np.empty((self.n_sites, self.n_atoms), np.uint16 if self.n_sites <= 1 << 16 else np.uint32)
        np.put_along_axis(ranks, self.preferred_order.T, np.arange(self.n_sites, dtype=ranks.dtype)[:, None], axis=0)
        return cast("NDArray[np.unsignedinteger]", _freeze(ranks))

    @cached_property
    def twin_groups(self) -> IntArray:
        """Index of the twin group of each site, shape (N,): sites with equal times, variations and preferences.

        Typically they are one station that is listed once for each unit that it can hold.
        """
        parts = [self.travel_times, self.turnout_times[:, None], self.service_times]
        law = self.response_law
        parts += [] if law is None else [law.travel_spread, law.turnout_spread[:, None]]
        parts += [] if self.preference is None else [self.preference]
        rows: dict[bytes, int] = {}
        keys = (blake2b(b"".join(part[i].tobytes() for part in parts)).digest() for i in range(self.n_sites))
        return _freeze(np.array([rows.setdefault(key, len(rows)) for key in keys]))

    def offered_load(self, units: int) -> float:
        """Return the offered load per unit, ρ = λ / (p μ), of p = ``units``, with 1/μ the `mean_service_time`."""
        return self.total_rate / 60 * self.mean_service_time / _validate.whole_number(units, "units")

    from_frames: ClassVar[classmethod[City, ..., City]] = classmethod(tables.from_frames)
    load: ClassVar[classmethod[City, ..., City]] = classmethod(tables.load)
    save = tables.save

    def replace(self, **changes: Any) -> City:
        """Return a validated copy of the city with some fields changed."""
        known = [f.name for f in dataclasses.fields(self)]
        if unknown := sorted(set(changes) - set(known)):
            raise InputError(f"a city has no field {unknown[0]!r}; its fields are {', '.join(known)}.")
        return dataclasses.replace(self, **changes)

    def _with_arrays(self, **arrays: float | FloatArray) -> City:
        """Return a copy with some arrays replaced by others of the same shapes, without validation, for speed."""
        city = copy(self)
        known = [field.name for field in dataclasses.fields(self)]
        for name in set(vars(city)) - set(known):  # cached values, which depend on the arrays
            del vars(city)[name]
        for name, array in arrays.items():
            vars(city)[name] = _freeze(array) if isinstance(array, np.ndarray) else array
        return city

    def scaled(self, theta: float) -> City:
        """Return the city with every arrival rate multiplied by ``theta``, above 0.

        Raise unless the offered work, λ/μ, then lies between 1e-9 and 1e9 erlangs.
        """
        theta = _validate.positive_number(theta, "theta")
        # Copy without validation: the limit on the load does not apply, and cached values do not depend on the scale.
        city = copy(self)
        with np.errstate(over="ignore", under="ignore"):  # refused below, with a better message
            rates = self.arrival_rates * theta
            work = rates.sum() / 60 * self.mean_service_time
        if not LEAST_ERLANGS <= work <= MOST_ERLANGS:
            allowed = f"{LEAST_ERLANGS:g} to {MOST_ERLANGS:g} erlangs"
            raise InputError(f"`theta` must scale the offered work to {allowed}; got {theta:g}, which gives {work:g}.")
        object.__setattr__(city, "arrival_rates", _freeze(rates))
        return city

    def with_offered_load(self, rho: float, units: int) -> City:
        """Return the city with all arrival rates scaled alike so that ``offered_load(units)`` is ``rho``."""
        return self.scaled(_validate.positive_number(rho, "rho") / self.offered_load(units))

    def sites_named(self, names: Iterable[str]) -> IntArray:
        """Return the indices of the sites with these names, shape (p,)."""
        if isinstance(names, str) or not np.iterable(names):
            raise InputError(f"`names` must be a sequence of site names; got {names!r}.")
        names = [str(name) for name in names]
        if (unknown := next((name for name in names if name not in self.site_names), None)) is not None:
            folded = {name.casefold(): name for name in self.site_names}
            meant = [repr(folded[name]) for name in get_close_matches(unknown.casefold(), folded, n=3)]
            hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
            raise InputError(f"no site is named {unknown!r}; there are {', '.join(self.site_names)}.{hint}")
        return np.array([self.site_names.index(name) for name in names])

    def __repr__(self) -> str:
        size = f"{self.n_atoms} atoms, {self.n_sites} sites, {self.total_rate:.3g} calls/h"
        law = self.response_law
        varies = "" if law is None else f", travel cv {np.mean(self.travel_cv):.2g}"
        return f"<City {self.name!r}: {size}, {self.mean_service_time:.3g} min per call{varies}>"


def _freeze(array: Any) -> Any:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def _checked_minutes(
    values: ArrayLike, name: str, shape: tuple[int | None, ...], most: float = MOST_MINUTES, *, strictly: bool = False
) -> FloatArray:
    """Return times (min) as an array of ``shape``; a number or one per site is repeated. Raise if above ``most``."""
    array = _validate.floats(values, name, "min")
    if None not in shape and array.shape in ((), shape[:1]):
        array = array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
        array = np.broadcast_to(array, cast("tuple[int, ...]", shape))
    array = _validate.real_array(array, name, shape, unit="min", low=0, strictly=strictly)
    if array.max() > most:
        raise InputError(f"`{name}` must be at most {most} minutes; got {array.max():g}. Divide seconds by 60.")
    return array


def _check_offered_work(rates: FloatArray, service: FloatArray) -> None:
    """Raise if all rates are zero, or rates (calls/h) or service times (min) appear to be in another unit."""
    if not rates.any():
        raise InputError("`arrival_rates` are all zero; at least one must be positive.")
    if service.max() < 0.5:
        raise InputError("`service_times` must be minutes; all values are below 0.5. Multiply hours by 60.")
    with np.errstate(over="ignore"):
        total = rates.sum()
    work = total / 60 * service.mean() / len(service)
    if work > MOST_SITE_ERLANGS:
        busy = f"{total:g} calls/h would keep {work:.3g} units busy at every site"
        raise InputError(f"`arrival_rates` must be calls per hour; {busy}. Divide calls per year by 8760.")


def _variation_coefficients(values: ArrayLike, name: str, shape: tuple[int, ...]) -> float | FloatArray:
    """Return coefficients of variation, as a number if all are equal, else of ``shape``; raise unless from 0 to 3."""
    if _validate.is_real(values) and 0 <= values <= MOST_CV:
        return float(values)  # the usual case, a thousand times in a search for places
    array = _validate.floats(values, name)
    if array.shape == shape[:1]:
        array = np.broadcast_to(array.reshape(-1, *[1] * (len(shape) - 1)), shape)
    array = _validate.real_array(array, name, shape if array.ndim else (), low=0)
    if array.max() > MOST_CV:
        hint = "It is the standard deviation divided by the mean; divide percent by 100."
        raise InputError(f"`{name}` must be from 0 to {MOST_CV}; got {array.max():g}. {hint}")
    return float(array.flat[0]) if (array == array.flat[0]).all() else array


def _unwrap_shape(shape: dict[str, Any], lon: float) -> dict[str, Any]:
    """Return a GeoJSON geometry whose longitudes are unwrapped to be nearest to ``lon``."""
    coordinates = json.loads(json.dumps(shape["coordinates"], default=np.ndarray.tolist))  # a copy in lists, to change
    for place in positions(coordinates):
        place[:2] = _validate.unwrap(np.array(place[:2]), lon).tolist()
    return {**shape, "coordinates": coordinates}


def _check_time_unit(minutes: FloatArray, km: FloatArray | None) -> None:
    """Raise if travel times (min) appear to be in another unit, judged by distances (km) or else by their median."""
    distant = np.zeros_like(minutes, bool) if km is None else (km > 1) & (minutes > 0)
    median, speed = np.median(minutes), 30.0  # a speed that passes, unless something speaks against it
    if distant.any() and km is not None:
        speed = 60 * float(np.median(km[distant] / minutes[distant]))
    elif median > LONGEST_MEDIAN_MIN:
        speed = 0.5  # too slow: the times look like seconds
    if not SLOWEST_KMH < speed < FASTEST_KMH:
        unit, remedy = ("hours", "Multiply them by 60.") if speed > FASTEST_KMH else ("seconds", "Divide them by 60.")
        if speed < SLOWEST_KMH / 30:  # too slow even for seconds
            unit, remedy = "metres", "Divide them by the metres driven in a minute, or give `speed_kmh` instead."
        said = f"between places over 1 km apart they mean {speed:.2g} km/h" if distant.any() else "no city is so wide"
        question = f"Are they {unit}? {remedy}"
        raise InputError(f"`travel_times` must be minutes; their median is {median:.3g}, and {said}. {question}")


def check_city(value: object, name: str = "city") -> City:
    """Return ``value``; raise unless it is a `City`."""
    return _validate.instance(value, name, City, "emsopt.City")
