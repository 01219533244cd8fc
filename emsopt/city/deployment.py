"""Deployments: the sites at which p units wait, and the set of allowed deployments.

A deployment is an array of p site indices; an index that occurs twice means two units at that site. Units at
the same site are interchangeable, and so are the sites of a twin group (`City.twin_groups`).
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import comb, prod

import numpy as np
from numba import njit

from .. import _validate
from ..errors import InputError
from .city import check_city

MOST_UNITS = 10_000


def check_sites(city, sites, name="sites"):
    """Return sites, given by index or name, as a non-empty array of valid indices, shape (p,).

    Raises
    ------
    InputError
        If an index is not a whole number or is out of range, or if ``sites`` is empty.
    """
    array = _indices(city, sites, name)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"`{name}` must be a flat sequence of at least one site index; got shape {array.shape}.")
    return array


def check_deployments(city, deployments):
    """Return ``deployments`` as an integer array of valid site indices, shape (K, p), K and p at least 1."""
    array = _indices(city, deployments, "deployments")
    if array.ndim != 2 or array.size == 0:
        msg = f"`deployments` must hold site indices, one row per deployment, shape (K, p); got shape {array.shape}."
        raise InputError(msg)
    return np.ascontiguousarray(array)


def _indices(city, values, name):
    """Return valid site indices of any shape from whole numbers or site names."""
    check_city(city)
    limits = f"whole site indices from 0 to {city.n_sites - 1}"
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"`{name}` must be {limits} in rows of equal length; got {values!r}.") from error
    if np.ma.isMaskedArray(values):
        raise InputError(f"`{name}` must be {limits}; got a masked array. Fill it first.")
    if array.dtype.kind in "UOT" and array.size and all(isinstance(value, str) for value in array.flat):
        return city.sites_named(array.ravel()).reshape(array.shape)
    if array.dtype.kind == "b":
        raise InputError(f"`{name}` must be {limits}; got truth values. Pass numpy.flatnonzero(...) of the mask.")
    is_whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.all(array == np.floor(array)))
    if not is_whole:
        raise InputError(f"`{name}` must be {limits}; got {array.tolist()}.")
    bad = (array < 0) | (array >= city.n_sites)
    if np.count_nonzero(bad):  # faster than `any` for one deployment
        raise InputError(f"`{name}` must be {limits}; got {array[bad].ravel()[0]:g}.")
    return array.astype(np.intp)


@dataclass(frozen=True, eq=False)
class DeploymentSpace:
    """The set of allowed deployments of a fleet.

    Parameters
    ----------
    city : City
        Defines the sites and their twin groups.
    units : int
        Fleet size p.
    colocation : bool or int
        Units that a listed site may hold: one (False), any number (True), or the given number.
    pinned : sequence of int
        Sites that must have a unit; a repeated index means two units.
    closed : sequence of int
        Sites that must have no unit.

    Notes
    -----
    Deployments that differ only in the choice among twin sites are identical. Each is listed once, with the
    lowest indices; `multiplicity` counts the sets of listed sites that it stands for.
    """

    city: object
    units: int
    colocation: bool | int = False
    pinned: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()
    room: np.ndarray = field(init=False)  # capacity of each listed site, shape (N,)
    kept: np.ndarray = field(init=False)  # pinned units at each site, shape (N,)

    def __post_init__(self):
        check_city(self.city)
        units = _validate.whole_number(self.units, "units", high=MOST_UNITS)
        if isinstance(self.colocation, (bool, np.bool_)):
            each = units if self.colocation else 1
        else:
            each = _validate.whole_number(self.colocation, "colocation", high=MOST_UNITS)
        pinned, closed = self._some(self.pinned, "pinned"), self._some(self.closed, "closed")
        both = np.intersect1d(pinned, closed)
        if both.size:
            raise InputError(f"site {self.city.site_names[both[0]]!r} is both pinned and closed.")
        room = np.full(self.city.n_sites, each)
        room[closed] = 0
        kept = np.bincount(pinned, minlength=self.city.n_sites)
        if (kept > room).any():
            k = int(np.argmax(kept > room))
            msg = f"site {self.city.site_names[k]!r} has {kept[k]} pinned units but holds at most {room[k]}."
            raise InputError(msg)
        if len(pinned) > units:
            raise InputError(f"{len(pinned)} units are pinned, but the fleet has only {units}.")
        if room.sum() < units:
            others = "." if self.colocation else ", or allow colocation (several units at a site)."
            raise InputError(
                f"{units} units do not fit: the open sites hold {room.sum()}. Use fewer units, close fewer "
                f"sites{others}"
            )
        for key, value in {"units": units, "room": room, "kept": kept}.items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "pinned", tuple(int(k) for k in pinned))
        object.__setattr__(self, "closed", tuple(int(k) for k in closed))

    def _some(self, sites, name):
        if isinstance(sites, str) or not np.iterable(sites):
            raise InputError(f"`{name}` must be a sequence of sites, which may be empty; got {sites!r}.")
        sites = sites if isinstance(sites, np.ndarray) else list(sites)
        return check_sites(self.city, sites, name) if len(sites) else np.empty(0, np.intp)

    @cached_property
    def _groups(self):
        """Lists of site indices by twin group, with each site repeated for every unit that it may hold."""
        groups = [[] for _ in range(self.city.twin_groups.max() + 1)]
        for site, group in enumerate(self.city.twin_groups):
            groups[group] += [site] * int(self.room[site])
        return [np.array(slots, dtype=np.intp) for slots in groups]

    @cached_property
    def capacities(self):
        """Capacity of each twin group, shape (G,)."""
        return np.array([len(slots) for slots in self._groups])

    @cached_property
    def floors(self):
        """Minimum number of units in each twin group, shape (G,)."""
        return np.bincount(self.city.twin_groups, weights=self.kept).astype(int)

    @cached_property
    def count(self):
        """Number of distinct deployments, which may be too large for `len`."""
        ways = [1] + [0] * self.units  # ways to place k units in the groups seen so far
        for low, high in zip(self.floors, self.capacities, strict=True):
            ways = [sum(ways[k - n] for n in range(low, min(high, k) + 1)) for k in range(self.units + 1)]
        return ways[-1]

    def __len__(self):
        return self.count

    def chunks(self, size=4096):
        """Yield all distinct deployments as arrays of at most ``size`` rows, shape (k, p), rows sorted."""
        size = _validate.whole_number(size, "size")
        free = self.capacities - self.floors
        counts = np.zeros(len(free), dtype=np.int64)
        _fill(counts, free, 0, self.units - self.floors.sum())
        slots, starts = np.concatenate(self._groups), np.r_[0, np.cumsum(self.capacities)]
        more = True
        while more:
            rows = np.empty((size, self.units), dtype=np.intp)
            filled, more = _next_rows(counts, free, self.floors, slots, starts, rows)
            yield rows[:filled]

    def canonical(self, sites):
        """Return the deployment with the lowest indices of its twin groups, sorted, shape (p,)."""
        sites = check_sites(self.city, sites)
        counts = self._counts(sites)
        if len(sites) != self.units or (counts > self.capacities).any() or (counts < self.floors).any():
            raise InputError(f"{sites.tolist()} is not an allowed deployment of {self.units} units.")
        return np.sort(np.concatenate([slots[:n] for slots, n in zip(self._groups, counts, strict=True)]))

    def __contains__(self, sites):
        try:
            self.canonical(sites)
        except InputError:
            return False
        return True

    def multiplicity(self, sites):
        """Return the number of sets of listed sites that this deployment stands for (without colocation)."""
        counts = self._counts(self.canonical(sites))
        return prod(comb(int(c), int(n)) for c, n in zip(self.capacities, counts, strict=True))

    def _counts(self, sites):
        """Units in each twin group, shape (G,)."""
        return np.bincount(self.city.twin_groups[sites], minlength=len(self._groups))

    def sample(self, rng, size=None):
        """Draw deployments by placing unpinned units on free places at random; shape (p,) or (size, p)."""
        rng = _validate.generator(rng)
        places = np.repeat(np.arange(self.city.n_sites), self.room - self.kept)
        free_units = self.units - len(self.pinned)

        def one():
            return self.canonical(np.r_[self.pinned, rng.choice(places, free_units, replace=False)].astype(int))

        if size is None:
            return one()
        return np.array([one() for _ in range(_validate.whole_number(size, "size"))])

    def neighbours(self, sites):
        """Return all allowed deployments that differ by one relocated unit, shape (k, p)."""
        counts = self._counts(self.canonical(sites))
        gives, takes = np.flatnonzero(counts > self.floors), np.flatnonzero(counts < self.capacities)
        rows = []
        for i in gives:
            for k in takes[takes != i]:
                moved = counts.copy()
                moved[i] -= 1
                moved[k] += 1
                rows.append(np.concatenate([slots[:n] for slots, n in zip(self._groups, moved, strict=True)]))
        return np.sort(np.array(rows, dtype=np.intp).reshape(-1, self.units), axis=1)


@njit(cache=True)
def _fill(counts, room, start, units):
    """Place ``units`` from ``start`` on, as far left as capacities allow."""
    for k in range(start, len(counts)):
        counts[k] = min(room[k], units)
        units -= counts[k]


@njit(cache=True)
def _next_rows(counts, room, floors, slots, starts, rows):
    """Write deployments from ``counts`` on into ``rows``; return their number and whether more remain."""
    n_groups, filled = len(counts), 0
    while filled < len(rows):
        column = 0
        for g in range(n_groups):
            for n in range(counts[g] + floors[g]):
                rows[filled, column] = slots[starts[g] + n]
                column += 1
        rows[filled].sort()
        filled += 1
        # Next in descending lexicographic order: move one unit right from the last place that allows it.
        tail, space = 0, 0
        g = n_groups - 1
        while g >= 0 and (counts[g] == 0 or space < tail + 1):
            tail += counts[g]
            space += room[g]
            g -= 1
        if g < 0:
            return filled, False
        counts[g] -= 1
        _fill(counts, room, g + 1, tail + 1)
    return filled, True
