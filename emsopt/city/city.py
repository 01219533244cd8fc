"""The city: where calls come from, where units may wait, and all times.

=====================  ======  ==========  =====================================================
name                   symbol  shape       meaning
=====================  ======  ==========  =====================================================
``arrival_rates``      λ_j     (M,)        calls per hour from atom j
``travel_times``       t_ij    (N, M)      minutes from site i to atom j
``turnout_times``      τ_i     (N,)        minutes from dispatch until a unit at site i rolls
``service_times``      1/μ_ij  (N, M)      mean minutes from dispatch until the unit is free again
``preference``                 (N, M)      preference of atom j for site i: smaller is preferred
=====================  ======  ==========  =====================================================

An *atom* is a small area whose calls are all treated alike; a *site* is a place where units may wait.
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

LONGEST_DRIVE_MIN = 24 * 60  # a travel time of more than a day must be in seconds
LONGEST_SERVICE_MIN = 24 * 60  # likewise
LONGEST_TURNOUT_MIN = 15  # values such as 60 and 90 must be seconds
# Range of the offered work, erlangs, in which every evaluator keeps at least six digits.
LEAST_STUDIED, MOST_STUDIED = 1e-9, 1e9
MOST_WORK = 500  # erlangs per site; all of New York keeps about 140 units busy


@dataclass(frozen=True, eq=False, repr=False)
class City:
    """Demand, candidate sites and times, validated once and then immutable.

    Parameters
    ----------
    arrival_rates : array_like, shape (M,)
        Calls per hour from each atom; at least 0, and not all zero.
    travel_times : array_like, shape (N, M)
        Minutes from each candidate site to each atom.
    turnout_times : array_like, shape (N,), or float
        Minutes from dispatch until the unit leaves, at most 15.
    service_times : array_like, shape (N, M) or (N,), or float
        Mean minutes that a call keeps a unit busy, from dispatch until it is free again, including turnout
        and travel.
    preference : array_like, shape (N, M), optional
        Rank or cost of site i for atom j; smaller is preferred, and ties go to the lower index. Default: the
        response time.
    atom_names, site_names : sequence of str, optional
        Distinct names.
    atom_locations, site_locations : array_like, shape (M, 2) and (N, 2), optional
        Longitude and latitude in degrees if ``geographic``, else kilometres east and north.
    atom_shapes : sequence of dict, length M, optional
        GeoJSON Polygon or MultiPolygon of each atom, for maps.
    geographic : bool
        Whether locations are longitude and latitude.
    name, notes : str
        Title, and notes on the data for readers of the results.

    Raises
    ------
    InputError
        If a value is missing, negative, not finite, of the wrong shape, or apparently in the wrong unit.

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
        travel_times = _validate.real_array(self.travel_times, "travel_times", (None, None), unit="min", low=0)
        n_sites, n_atoms = travel_times.shape
        object.__setattr__(self, "geographic", _validate.truth(self.geographic, "geographic"))
        rates = _validate.real_array(self.arrival_rates, "arrival_rates", (None,), unit="calls/h", low=0)
        if len(rates) != n_atoms:
            hint = " It looks transposed: sites are rows, atoms are columns." if len(rates) == n_sites else ""
            raise InputError(
                f"`travel_times` must have one column for each of the {len(rates)} `arrival_rates`; "
                f"got shape {travel_times.shape}.{hint}"
            )
        with np.errstate(over="ignore"):
            total = rates.sum()
        if total == 0:
            raise InputError("`arrival_rates` are all zero; at least one must be positive.")
        if travel_times.max() > LONGEST_DRIVE_MIN:
            raise InputError(
                f"`travel_times` must be in minutes; got {travel_times.max():g}, more than a day. Divide seconds by 60."
            )
        turnout = self._spread(self.turnout_times, "turnout_times", (n_sites,), low=0)
        if turnout.max() > LONGEST_TURNOUT_MIN:
            raise InputError(
                f"`turnout_times` must be in minutes, at most {LONGEST_TURNOUT_MIN}; got {turnout.max():g}, which "
                "suggests seconds. Divide them by 60."
            )
        service = self._spread(self.service_times, "service_times", (n_sites, n_atoms), low=0, strictly=True)
        if service.max() < 0.5:
            raise InputError(
                f"`service_times` must be in minutes per call; the longest is {service.max():g}. "
                "Invert rates (calls per hour), and multiply hours by 60."
            )
        if service.max() > LONGEST_SERVICE_MIN:
            msg = f"`service_times` must be in minutes; got {service.max():g}, more than a day. Divide seconds by 60."
            raise InputError(msg)
        work = total / 60 * service.mean() / n_sites
        if work > MOST_WORK:
            raise InputError(
                f"`arrival_rates` must be calls per hour; {total:g} of {service.mean():g} min each would keep "
                f"{work:.3g} units busy at every site. Divide calls per year by 8760, per month by 730, per day by 24. "
                "To study an extreme load, build the city with its real load and use scaled() or with_offered_load()."
            )
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
        """Validate a scalar, one value per site, or a full array, and broadcast it to ``shape``."""
        try:
            # masked arrays would lose their mask here; `real_array` refuses them and ragged ones
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
                hint = "For kilometres on a plane, pass geographic=False."
            got = points[0].tolist()
            raise InputError(f"`{name}` must be longitude and latitude in degrees; got values such as {got}. {hint}")
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
        """Share of calls from each atom, shape (M,), summing to one."""
        return _frozen(self.arrival_rates / self.arrival_rates.sum())

    @cached_property
    def response_times(self):
        """Turnout plus travel, τ_i + t_ij, shape (N, M), min."""
        return _frozen(self.turnout_times[:, None] + self.travel_times)

    @cached_property
    def mean_service_time(self):
        """Mean minutes that a call keeps a unit busy: mean over calls, with equal weights for sites."""
        return float((self.service_times @ self.demand_shares).mean())

    @cached_property
    def service_ratio(self):
        """Ratio of the longest to the shortest mean service time of a site, each a mean over calls."""
        minutes = self.service_times @ self.demand_shares
        return float(minutes.max() / minutes.min())

    @cached_property
    def preferred_order(self):
        """Sites in order of preference of each atom, γ_jl, shape (M, N); ties go to the lower twin group."""
        key = self.response_times if self.preference is None else self.preference
        groups = np.broadcast_to(self.twin_groups[:, None], key.shape)  # keep twins together in a tie
        return _frozen(np.ascontiguousarray(np.lexsort((groups, key), axis=0).T))

    @cached_property
    def twin_groups(self):
        """Index of the group of interchangeable sites that each site belongs to, shape (N,).

        Two sites are interchangeable if all their times and preferences are equal. Typically they are one
        station, listed once for each unit that it can hold.
        """
        parts = [self.travel_times, self.turnout_times[:, None], self.service_times]
        parts += [] if self.preference is None else [self.preference]
        rows = {}
        return _frozen(np.array([rows.setdefault(row.tobytes(), len(rows)) for row in np.hstack(parts)]))

    def offered_load(self, units):
        """Return the offered load per unit, ρ = λ / (p μ), for a fleet of ``units``."""
        return self.total_rate / 60 * self.mean_service_time / _validate.whole_number(units, "units")

    # -- other cities -----------------------------------------------------------------------------------------

    def replace(self, **changes):
        """Return a validated copy with some fields changed."""
        unknown = sorted(set(changes) - {f.name for f in fields(self)})
        if unknown:
            msg = f"a city has no field {unknown[0]!r}; its fields are {', '.join(f.name for f in fields(self))}."
            raise InputError(msg)
        return _replace(self, **changes)

    def scaled(self, theta):
        """Return the city with every arrival rate multiplied by ``theta`` > 0 (the papers' λ_j(θ))."""
        theta = _validate.positive_number(theta, "theta")
        # A plain copy: cached derived values hold for any scale, and the limit on the load does not apply.
        city = copy(self)
        with np.errstate(over="ignore", under="ignore"):
            rates = self.arrival_rates * theta
            work = rates.sum() / 60 * self.mean_service_time
        if not LEAST_STUDIED <= work <= MOST_STUDIED:
            raise InputError(
                f"`theta` must scale `arrival_rates` to an offered work of {LEAST_STUDIED:g} to {MOST_STUDIED:g} "
                f"erlangs; {theta:g} gives {work:g}."
            )
        _frozen(rates)
        object.__setattr__(city, "arrival_rates", rates)
        return city

    def with_offered_load(self, rho, units):
        """Return the city with arrival rates scaled so that λ / (p μ) = ``rho`` for ``units`` = p.

        If service times differ, 1/μ is their mean over calls and sites (`mean_service_time`).
        """
        rho = _validate.positive_number(rho, "rho")
        return self.scaled(rho / self.offered_load(units))

    def sites_named(self, names):
        """Return the indices of the sites with these names, shape (p,)."""
        if isinstance(names, str) or not np.iterable(names):
            raise InputError(f"`names` must be a sequence of site names; got {names!r}.")
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

        Column names are case-insensitive; columns not listed here are ignored. Locations are the geometry of
        a GeoDataFrame, or ``lon`` and ``lat`` (degrees), or ``x`` and ``y`` (kilometres on a plane). They are
        needed for a speed or a travel-time law, and for maps.

        Parameters
        ----------
        demand : DataFrame or GeoDataFrame, M rows
            ``name`` or ``atom`` (a column or the index; numbered by default), and ``arrival_rate`` in calls
            per hour or ``calls`` counted over ``period_hours``. Polygons become the shapes of the atoms; the
            location of each is a point inside its polygon.
        sites : DataFrame or GeoDataFrame, N rows
            ``name`` or ``site``, in the same way; ``turnout_min`` and ``service_min`` unless passed as
            arguments.
        travel_times : DataFrame, array_like of shape (N, M), or callable, optional
            Minutes. A DataFrame has site names as index and atom names as columns, in any order; an array
            follows the order of the tables; a callable converts road distance (km) to minutes (see
            `emsopt.city.travel`).
        speed_kmh : float, optional
            Constant speed (km/h), instead of ``travel_times``.
        detour : float
            Ratio of road distance to straight-line distance, used if travel times are computed.
        turnout_times : float or array_like of shape (N,), optional
            Minutes, instead of the column ``turnout_min``.
        service_times : float, array_like of shape (N,) or (N, M), or DataFrame, optional
            Minutes, instead of the column ``service_min``.
        preference : DataFrame or array_like of shape (N, M), optional
            Preference of each atom for each site: smaller is preferred.
        period_hours : float, optional
            Hours over which ``calls`` were counted, 8760 for a year.
        name, notes : str
            Title, and notes on the data for readers of the results.

        Returns
        -------
        City

        Raises
        ------
        InputError
            If a column is missing, a cell is blank, not a number or out of range, names do not match between
            tables, or the resulting city is invalid.

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
        """Write the city to a folder of plain CSV, JSON and GeoJSON files that `load` can read."""
        from .tables import write_folder_of

        return write_folder_of(self, folder)

    @classmethod
    def load(cls, folder):
        """Read a folder written by `save` or by hand. `emsopt.city.tables` describes the files.

        Parameters
        ----------
        folder : path_like

        Raises
        ------
        InputError
            If a file is missing or damaged, a column is missing, a cell is not a number, names do not match
            between files, or the city is invalid. The message names the file, the row and the column.
        """
        from .tables import arguments_of_folder, reading

        with reading(folder) as path:
            return cls(**arguments_of_folder(path))

    def __repr__(self):
        return (
            f"<City {self.name!r}: {self.n_atoms} atoms, {self.n_sites} sites, "
            f"{self.total_rate:.3g} calls/h, {self.mean_service_time:.3g} min per call>"
        )


def _frozen(array):
    """Make a derived array read-only, because the cached array is shared."""
    array.flags.writeable = False
    return array


def _check_same_region(atoms, sites):
    """Raise if sites and atoms are far apart, in particular if one set has latitude and longitude swapped."""
    apart = travel.great_circle_km(sites[:1], atoms[:1])[0, 0]
    if apart <= 1000:
        return
    flipped = sites[:1, ::-1]
    if np.abs(flipped[:, 1]).max() <= 90 and travel.great_circle_km(flipped, atoms[:1])[0, 0] <= 1000:
        raise InputError(
            "`site_locations` or `atom_locations` appear to have latitude and longitude swapped; longitude comes "
            f"first. Sites start at {sites[0].tolist()}, atoms at {atoms[0].tolist()}."
        )
    msg = f"`site_locations` and `atom_locations` lie {apart:.0f} km apart; both must belong to the same city."
    raise InputError(msg)


def check_city(value, name="city"):
    """Return ``value`` if it is a `City`, else raise."""
    return _validate.instance(value, name, City, "emsopt.City")
