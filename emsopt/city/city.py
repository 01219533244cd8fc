"""A city: where calls come from, where units may wait, and how long everything takes.

=====================  ======  ==========  =====================================================
name                   symbol  shape       meaning
=====================  ======  ==========  =====================================================
``arrival_rates``      λ_j     (M,)        calls per hour from atom j
``travel_times``       t_ij    (N, M)      minutes from site i to atom j
``turnout_times``      τ_i     (N,)        minutes from dispatch until a unit at site i rolls
``service_times``      1/μ_ij  (N, M)      mean minutes from dispatch until the unit is free again
``preference``                 (N, M)      whom atom j would have come: smaller is sooner
=====================  ======  ==========  =====================================================

An *atom* is a small area whose calls are treated alike; a *site* is a place where units may wait.
"""

from copy import copy
from dataclasses import dataclass, field, fields
from dataclasses import replace as _replace
from difflib import get_close_matches
from functools import cached_property

import numpy as np

from .. import _validate
from .._files.shapes import check_shapes
from ..errors import InputError
from . import travel

LONGEST_DRIVE_MIN = 24 * 60  # a travel time above a day is surely in seconds
LONGEST_SERVICE_MIN = 24 * 60  # likewise
LONGEST_TURNOUT_MIN = 15  # 60 and 90 are surely seconds
# Offered work, erlangs, between which every evaluator keeps at least six digits.
LEAST_STUDIED, MOST_STUDIED = 1e-9, 1e9
MOST_WORK = 500  # erlangs a site: New York keeps about 140 units busy in all


@dataclass(frozen=True, eq=False, repr=False)
class City:
    """Demand, candidate sites and times, validated once and then immutable.

    Parameters
    ----------
    arrival_rates : array_like, shape (M,)
        Calls per hour from each atom; none negative, not all zero.
    travel_times : array_like, shape (N, M)
        Minutes from each candidate site to each atom.
    turnout_times : array_like, shape (N,), or float
        Minutes from dispatch until a unit starts to drive, at most 15.
    service_times : array_like, shape (N, M) or (N,), or float
        Mean minutes a unit is tied up by a call, from dispatch until it is free again (turnout and travel
        included).
    preference : array_like, shape (N, M), optional
        Rank or cost by which atom j prefers site i, smaller first; ties go to the lower index.
        Left out: the closest by response time comes first.
    atom_names, site_names : sequence of str, optional
        Distinct names.
    atom_locations, site_locations : array_like, shape (M, 2) and (N, 2), optional
        Longitude and latitude in degrees if ``geographic``, else kilometres east and north.
    atom_shapes : sequence of dict, length M, optional
        GeoJSON Polygon or MultiPolygon of every atom, drawn on maps.
    geographic : bool
        Whether locations are longitude and latitude.
    name, notes : str
        Title, and whatever a reader of a result must know about the data.

    Raises
    ------
    InputError
        If anything is missing, negative, not finite, of the wrong shape, or looks like the wrong unit.

    Examples
    --------
    >>> city = City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    >>> city.n_sites, city.n_atoms, round(city.offered_load(units=2), 3)
    (2, 2, 1.0)
    """

    arrival_rates: np.ndarray
    travel_times: np.ndarray
    turnout_times: np.ndarray
    service_times: np.ndarray
    preference: np.ndarray | None = field(default=None, kw_only=True)
    atom_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    site_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    atom_locations: np.ndarray | None = field(default=None, kw_only=True)
    site_locations: np.ndarray | None = field(default=None, kw_only=True)
    atom_shapes: tuple[dict, ...] | None = field(default=None, kw_only=True)
    geographic: bool = field(default=True, kw_only=True)
    name: str = field(default="city", kw_only=True)
    notes: str = field(default="", kw_only=True)

    def __post_init__(self):
        travel_times = _validate.real_array(
            self.travel_times, "travel_times", (None, None), unit="min", low=0
        )
        n_sites, n_atoms = travel_times.shape
        object.__setattr__(self, "geographic", _validate.truth(self.geographic, "geographic"))
        rates = _validate.real_array(self.arrival_rates, "arrival_rates", (None,), unit="calls/h", low=0)
        if len(rates) != n_atoms:
            hint = " It looks transposed: sites are rows, atoms are columns." if len(rates) == n_sites else ""
            msg = (
                f"`travel_times` must have one column for each of the {len(rates)} `arrival_rates`; "
                f"got shape {travel_times.shape}.{hint}"
            )
            raise InputError(msg)
        with np.errstate(over="ignore"):
            total = rates.sum()
        if total == 0:
            msg = "`arrival_rates` are all zero; a city needs at least one call."
            raise InputError(msg)
        if travel_times.max() > LONGEST_DRIVE_MIN:
            msg = (
                f"`travel_times` must be minutes; {travel_times.max():g} is over a day. Divide seconds by 60."
            )
            raise InputError(msg)
        turnout = self._spread(self.turnout_times, "turnout_times", (n_sites,), low=0)
        if turnout.max() > LONGEST_TURNOUT_MIN:
            msg = (
                f"`turnout_times` must be minutes, at most {LONGEST_TURNOUT_MIN}; got {turnout.max():g}, which suggests "
                "seconds. Divide them by 60."
            )
            raise InputError(msg)
        service = self._spread(self.service_times, "service_times", (n_sites, n_atoms), low=0, strictly=True)
        if service.max() < 0.5:
            msg = (
                f"`service_times` must be minutes a call; the longest is {service.max():g}. "
                "Rates (calls per hour) have to be inverted, hours multiplied by 60."
            )
            raise InputError(msg)
        if service.max() > LONGEST_SERVICE_MIN:
            msg = f"`service_times` must be minutes; {service.max():g} is over a day. Divide seconds by 60."
            raise InputError(msg)
        work = total / 60 * service.mean() / n_sites
        if work > MOST_WORK:
            msg = (
                f"`arrival_rates` must be calls per hour; {total:g} of {service.mean():g} min each would keep "
                f"{work:.3g} units busy at every site. Divide calls per year by 8760, per month by 730, per day by "
                "24. To study an extreme load, build the city at its own and use scaled() or with_offered_load()."
            )
            raise InputError(msg)
        values = {
            "arrival_rates": rates,
            "travel_times": travel_times,
            "turnout_times": turnout,
            "service_times": service,
            "atom_names": _validate.names(self.atom_names, "atom_names", n_atoms, "atom"),
            "site_names": _validate.names(self.site_names, "site_names", n_sites, "site"),
            "name": _validate.visible(self.name, "`name`"),
            "notes": _validate.visible(self.notes, "`notes`", allowed="\n\r\t"),
        }
        if self.preference is not None:
            values["preference"] = _validate.real_array(self.preference, "preference", (n_sites, n_atoms))
        for key, length in (("atom_locations", n_atoms), ("site_locations", n_sites)):
            if getattr(self, key) is not None:
                values[key] = self._locations(getattr(self, key), key, length)
        if self.geographic and "atom_locations" in values and "site_locations" in values:
            _check_same_region(values["atom_locations"], values["site_locations"])
        if self.atom_shapes is not None:
            values["atom_shapes"] = check_shapes(self.atom_shapes, n_atoms, geographic=self.geographic)
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @staticmethod
    def _spread(values, name, shape, **limits):
        """Validate a scalar, a value a site, or a full array, and spread it to ``shape``."""
        try:
            # with a mask, which would be lost here, or ragged: `real_array` refuses them
            given = None if np.ma.isMaskedArray(values) else np.shape(values)
        except ValueError:
            given = None
        if given == ():
            values = np.broadcast_to(_validate.real_array([values], name, (1,), unit="min", **limits), shape)
        elif len(shape) == 2 and given == shape[:1]:
            values = np.broadcast_to(np.asarray(values)[:, None], shape)
        return _validate.real_array(values, name, shape, unit="min", **limits)

    def _locations(self, values, name, length):
        points = _validate.real_array(values, name, (length, 2))
        if self.geographic and (np.abs(points[:, 0]).max() > 180 or np.abs(points[:, 1]).max() > 90):
            if np.abs(points[:, 0]).max() <= 90 and np.abs(points[:, 1]).max() <= 180:
                hint = "Latitude and longitude look swapped: longitude comes first."
            else:
                hint = "If they are kilometres on a plane, pass geographic=False."
            got = points[0].tolist()
            msg = f"`{name}` must be longitude, latitude in degrees; got values such as {got}. {hint}"
            raise InputError(msg)
        return points

    # -- sizes and derived quantities -------------------------------------------------------------------------

    @property
    def n_sites(self):
        """Number of candidate sites, N."""
        return self.travel_times.shape[0]

    @property
    def n_atoms(self):
        """Number of atoms, M."""
        return self.travel_times.shape[1]

    @property
    def total_rate(self):
        """Calls per hour from the whole city, λ."""
        return float(self.arrival_rates.sum())

    @cached_property
    def demand_shares(self):
        """Share of every atom in the calls, shape (M,), summing to one."""
        return _frozen(self.arrival_rates / self.arrival_rates.sum())

    @cached_property
    def response_times(self):
        """Turnout plus travel, τ_i + t_ij, shape (N, M), min."""
        return _frozen(self.turnout_times[:, None] + self.travel_times)

    @cached_property
    def mean_service_time(self):
        """Mean minutes a call ties a unit up: over calls, and over sites alike."""
        return float((self.service_times @ self.demand_shares).mean())

    @cached_property
    def service_ratio(self):
        """Longest mean service time of a site, over calls, divided by the shortest."""
        minutes = self.service_times @ self.demand_shares
        return float(minutes.max() / minutes.min())

    @cached_property
    def preferred_order(self):
        """Sites in the order each atom prefers them, γ_jl, shape (M, N); ties to the lower index (of a twin group)."""
        key = self.response_times if self.preference is None else self.preference
        groups = np.broadcast_to(self.twin_groups[:, None], key.shape)  # keeps twins together in a tie
        return _frozen(np.ascontiguousarray(np.lexsort((groups, key), axis=0).T))

    @cached_property
    def twin_groups(self):
        """Number of the group of interchangeable sites that each site belongs to, shape (N,).

        Two sites are interchangeable if every time and preference is equal: typically one station listed
        once for each unit that it can hold.
        """
        parts = [self.travel_times, self.turnout_times[:, None], self.service_times]
        parts += [] if self.preference is None else [self.preference]
        rows = {}
        return _frozen(np.array([rows.setdefault(row.tobytes(), len(rows)) for row in np.hstack(parts)]))

    def offered_load(self, units):
        """Offered load a unit, ρ = λ / (p μ), for a fleet of ``units``."""
        return self.total_rate / 60 * self.mean_service_time / _validate.whole_number(units, "units")

    # -- other cities -----------------------------------------------------------------------------------------

    def replace(self, **changes):
        """Return a copy with some fields changed, validated anew."""
        unknown = sorted(set(changes) - {f.name for f in fields(self)})
        if unknown:
            msg = f"a city has no field {unknown[0]!r}; it has {', '.join(f.name for f in fields(self))}."
            raise InputError(msg)
        return _replace(self, **changes)

    def scaled(self, theta):
        """Return the city with every arrival rate multiplied by ``theta`` > 0 (the papers' λ_j(θ))."""
        theta = _validate.positive_number(theta, "theta")
        # A plain copy: everything derived so far holds for any scale, and no load is too absurd to study.
        city = copy(self)
        with np.errstate(over="ignore", under="ignore"):
            rates = self.arrival_rates * theta
            work = rates.sum() / 60 * self.mean_service_time
        if not LEAST_STUDIED <= work <= MOST_STUDIED:
            msg = (
                f"`theta` must leave `arrival_rates` that offer {LEAST_STUDIED:g} to {MOST_STUDIED:g} erlangs of work; "
                f"{theta:g} gives {work:g}."
            )
            raise InputError(msg)
        _frozen(rates)
        object.__setattr__(city, "arrival_rates", rates)
        return city

    def with_offered_load(self, rho, units):
        """Return the city with arrival rates scaled so that λ / (p μ) = ``rho`` for ``units`` = p.

        Where service times differ, 1/μ is their mean over calls and over sites (`mean_service_time`).
        """
        rho = _validate.positive_number(rho, "rho")
        return self.scaled(rho / self.offered_load(units))

    def sites_named(self, names):
        """Return the indices of the sites with these names, shape (p,)."""
        if isinstance(names, str) or not np.iterable(names):
            msg = f"`names` must be a sequence of site names; got {names!r}."
            raise InputError(msg)
        index = {name: k for k, name in enumerate(self.site_names)}
        names = [str(name) for name in names]
        unknown = [name for name in names if name not in index]
        if unknown:
            folded = {name.casefold(): name for name in self.site_names}
            meant = [folded[name] for name in get_close_matches(unknown[0].casefold(), folded, n=3)]
            hint = f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""
            msg = f"{self.name} has no site named {unknown[0]!r}; it has {', '.join(self.site_names)}.{hint}"
            raise InputError(msg)
        return np.array([index[name] for name in names])

    # -- from tables, to and from disk ------------------------------------------------------------------------

    @classmethod
    def from_frames(
        cls,
        demand,
        sites,
        *,
        travel_times=None,
        speed_kmh=None,
        detour=1.3,
        turnout_times=None,
        service_times=None,
        preference=None,
        period_hours=None,
        name="city",
        notes="",
    ):
        """Build a city from a table of demand and a table of sites.

        Columns are found whatever their case, and columns that are not named here are ignored. Locations are a
        GeoDataFrame's geometry, else ``lon`` and ``lat`` (degrees), else ``x`` and ``y`` (kilometres on a plane). They
        are needed for a speed or a travel-time law, and for maps.

        Parameters
        ----------
        demand : DataFrame or GeoDataFrame, M rows
            ``name`` or ``atom`` (a column or the index; numbered if left out), and ``arrival_rate`` in calls per hour
            or ``calls`` counted over ``period_hours``. Polygons become the shapes of the atoms, and a point inside each
            its location.
        sites : DataFrame or GeoDataFrame, N rows
            ``name`` or ``site``, likewise; ``turnout_min`` and ``service_min`` unless they are arguments.
        travel_times : DataFrame, array_like of shape (N, M), or callable, optional
            Minutes. A DataFrame has the names of the sites as index and of the atoms as columns, in any order; an array
            has the order of the tables; a callable turns road distance (km) into minutes (see `emsopt.city.travel`).
        speed_kmh : float, optional
            Constant speed (km/h), in place of ``travel_times``.
        detour : float
            Road distance over distance as the crow flies, where travel times are computed.
        turnout_times : float or array_like of shape (N,), optional
            Minutes, in place of the column ``turnout_min``.
        service_times : float, array_like of shape (N,) or (N, M), or DataFrame, optional
            Minutes, in place of the column ``service_min``.
        preference : DataFrame or array_like of shape (N, M), optional
            Whom each atom would have come: smaller is sooner.
        period_hours : float, optional
            Hours over which ``calls`` were counted, 8760 for a year.
        name, notes : str
            Title, and what a reader of a result must know about the data.

        Returns
        -------
        City

        Raises
        ------
        InputError
            If a column is missing, a cell is blank, no number or out of range, names do not match between tables, or
            the city that results is not valid.

        Examples
        --------
        >>> import pandas as pd
        >>> demand = pd.DataFrame({"name": ["north", "south"], "x": [0, 0], "y": [6, 0], "arrival_rate": [1, 2]})
        >>> sites = pd.DataFrame({"name": ["station"], "x": [0], "y": [2], "turnout_min": [1], "service_min": [40]})
        >>> City.from_frames(demand, sites, speed_kmh=60, detour=1).travel_times.tolist()
        [[4.0, 2.0]]
        """
        from .tables import arguments_of_frames

        return cls(
            **arguments_of_frames(
                demand,
                sites,
                travel_times=travel_times,
                speed_kmh=speed_kmh,
                detour=detour,
                turnout_times=turnout_times,
                service_times=service_times,
                preference=preference,
                period_hours=period_hours,
                name=name,
                notes=notes,
            )
        )

    def save(self, folder):
        """Write the city as a folder of plain CSV, JSON and GeoJSON files: as `load` reads them."""
        from .tables import write_folder_of

        return write_folder_of(self, folder)

    @classmethod
    def load(cls, folder):
        """Read a folder written by `save`, or by hand; its files are described in `emsopt.city.tables`.

        Parameters
        ----------
        folder : path_like

        Raises
        ------
        InputError
            If a file is missing or broken, a column is missing, a cell is no number, names do not match between
            files, or the city is invalid; the message names the file, the row and the column.
        """
        from .tables import arguments_of_folder, reading

        with reading(folder) as path:
            return cls(**arguments_of_folder(path))

    def __repr__(self):
        return (
            f"<City {self.name!r}: {self.n_atoms} atoms, {self.n_sites} sites, "
            f"{self.total_rate:.3g} calls/h, {self.mean_service_time:.3g} min a call>"
        )


def _frozen(array):
    """Make a derived array read-only: it is shared by all who ask for it."""
    array.flags.writeable = False
    return array


def _check_same_region(atoms, sites):
    """Refuse coordinates of which one set has latitude and longitude the wrong way round."""
    apart = travel.great_circle_km(sites[:1], atoms[:1])[0, 0]
    if apart <= 1000:
        return
    flipped = sites[:1, ::-1]
    if np.abs(flipped[:, 1]).max() <= 90 and travel.great_circle_km(flipped, atoms[:1])[0, 0] <= 1000:
        msg = (
            "`site_locations` or `atom_locations` look as if latitude and longitude were swapped; longitude comes "
            f"first. Sites start at {sites[0].tolist()}, atoms at {atoms[0].tolist()}."
        )
        raise InputError(msg)
    msg = f"`site_locations` and `atom_locations` lie {apart:.0f} km apart; they must be of one city."
    raise InputError(msg)


def check_city(value, name="city"):
    """Return ``value`` if it is a `City`."""
    return _validate.instance(value, name, City, "emsopt.City")
