"""Deployments: the sites at which p units wait, and the set of allowed deployments.

A deployment is an array of p site indices. An index that occurs twice means two units at that site. Units at the same
site or at sites of one twin group (`City.twin_groups`) are interchangeable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb, prod
from typing import Any, ClassVar, cast

import numpy as np

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, IntArray, Rng, Sites
from .city import City, check_city

MOST_UNITS = 2_000  # per fleet, because results hold a matrix of units by units


def check_sites(city: City, sites: Any, name: str = "sites") -> IntArray:
    """Return sites, given by index or name, as indices, shape (p,); raise if one is invalid or p is 0."""
    array = _indices(city, sites, name)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"`{name}` must be a flat sequence of at least one site index; got shape {array.shape}.")
    return array


def check_deployments(city: City, deployments: Any) -> IntArray:
    """Return deployments, given by index or name, as site indices, (K, p); raise if one is invalid, or K or p is 0."""
    array = _indices(city, deployments, "deployments")
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"`deployments` must hold one row per deployment, shape (K, p); got shape {array.shape}.")
    return np.ascontiguousarray(array)


def _indices(city: City, values: Any, name: str) -> IntArray:
    """Convert site indices or names to an array of indices of the same shape; raise if one is invalid."""
    check_city(city)
    limits = f"whole site indices from 0 to {city.n_sites - 1}"
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"`{name}` must be {limits} in rows of equal length; got {values!r}.") from error
    if np.ma.isMaskedArray(values):  # whose mask `asarray` ignores
        raise InputError(f"`{name}` must be {limits}; got a masked array. Fill the masked entries first.")
    # U, O and T (texts of variable length) are numpy's kinds of text
    if array.dtype.kind in "UOT" and array.size and all(isinstance(value, str) for value in array.flat):
        return city.sites_named(array.ravel()).reshape(array.shape)
    if array.dtype.kind == "b":
        raise InputError(f"`{name}` must be {limits}; got truth values. Pass numpy.flatnonzero(...) of the mask.")
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "f" and np.all(array == np.floor(array))):
        raise InputError(f"`{name}` must be {limits}; got {array.tolist()}.")
    bad = (array < 0) | (array >= city.n_sites)
    if np.count_nonzero(bad):  # faster than `any` for one deployment
        raise InputError(f"`{name}` must be {limits}; got {array[bad].ravel()[0]:g}.")
    if array.ndim and array.shape[-1] > MOST_UNITS:
        raise InputError(f"`{name}` must have at most {MOST_UNITS:,} units; got {array.shape[-1]:,}.")
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False)
class DeploymentSpace:
    """The set of allowed deployments of a fleet.

    Functions that take a fleet size p also accept a space, which may be that of another city with the same site names.

    Parameters
    ----------
    city : City
        Defines the sites and their twin groups.
    units : int
        Fleet size p.
    colocation : bool or int
        Number of units that a listed site may hold: one (False), any number (True), or the given number.
    pinned : sequence of int or str
        Sites that must have a unit; a site listed twice must have two.
    closed : sequence of int or str
        Sites that must have no unit.

    Attributes
    ----------
    site_floors, site_capacities : ndarray of int, shape (N,)
        Minimum and maximum number of units at each listed site.

    Notes
    -----
    Deployments that differ only in the choice among twin sites count as one, listed with the lowest indices.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=0)
    >>> space = eo.DeploymentSpace(city, 3, pinned=[0], closed=[4, 5])
    >>> space
    <DeploymentSpace of 'grid city, plane': units=3, pinned=(0,), closed=(4, 5), 3 deployments>
    >>> space.listing().tolist()
    [[0, 1, 2], [0, 1, 3], [0, 2, 3]]
    """

    names: ClassVar[tuple[str, ...]] = ()  # only inputs of boxes have names; optimizers ask for them in any space
    city: City
    units: int
    colocation: bool | int = False
    pinned: Sites = ()
    closed: Sites = ()
    site_floors: IntArray = field(init=False)
    site_capacities: IntArray = field(init=False)

    def __post_init__(self) -> None:
        check_city(self.city)
        units = _validate.whole_number(self.units, "units", high=MOST_UNITS)
        if isinstance(self.colocation, (bool, np.bool_)):  # before numbers, as True is one too
            each = units if self.colocation else 1
        else:
            each = _validate.whole_number(self.colocation, "colocation", high=MOST_UNITS)
        pinned, closed = self._checked_sites(self.pinned, "pinned"), self._checked_sites(self.closed, "closed")
        names = self.city.site_names
        if both := set(pinned.tolist()) & set(closed.tolist()):
            raise InputError(f"site {names[min(both)]!r} is both pinned and closed.")
        floors, capacities = np.bincount(pinned, minlength=len(names)), np.full(len(names), each)
        capacities[closed] = 0
        if (floors > capacities).any():
            k = int(np.argmax(floors > capacities))
            raise InputError(f"site {names[k]!r} has {floors[k]} pinned units but holds at most {capacities[k]}.")
        if len(pinned) > units:
            raise InputError(f"{len(pinned)} units are pinned, but the fleet has only {units}.")
        if capacities.sum() < units:
            room = int(capacities.sum())
            raise InputError(f"{units} units do not fit: the open sites hold {room}. {self._remedy(units, closed)}")
        vars(self).update(units=units, site_floors=floors, site_capacities=capacities)
        vars(self).update(pinned=tuple(pinned.tolist()), closed=tuple(closed.tolist()))

    def _remedy(self, units: int, closed: IntArray) -> str:
        """Return a sentence with advice for a fleet that does not fit, such as the least `colocation` that suffices."""
        sites = self.city.n_sites - len(np.unique(closed))
        if not sites:
            return "Close fewer sites."
        least = -(-units // sites)
        fewer = "Use fewer units, close fewer sites," if len(closed) else "Use fewer units"
        return f"{fewer} or let a site hold {least} units by `DeploymentSpace(city, {units}, colocation={least})`."

    def _checked_sites(self, sites: Any, name: str) -> IntArray:
        """Return the sites passed as argument ``name`` as indices, shape (k,), with k >= 0."""
        if isinstance(sites, str) or not np.iterable(sites):
            raise InputError(f"`{name}` must be a sequence of sites, which may be empty; got {sites!r}.")
        sites = sites if isinstance(sites, np.ndarray) else list(sites)  # an iterator can be read only once
        return check_sites(self.city, sites, name) if len(sites) else np.empty(0, np.int64)

    @classmethod
    def of(cls, city: City, units: int | DeploymentSpace, *, colocation: bool = False) -> DeploymentSpace:
        """Return the space of a fleet size in ``city``, or a given space with its rules applied to ``city``."""
        if not isinstance(units, DeploymentSpace):
            return cls(city, units, colocation=colocation)
        if check_city(city) is units.city:
            return units
        if city.site_names != units.city.site_names:
            other = f"a city with other sites than {city.name!r}"
            raise InputError(f"`units` is a DeploymentSpace of {other}. Make one for this city.")
        return replace(units, city=city)

    @cached_property
    def _slots_by_group(self) -> list[IntArray]:
        """For each twin group its site indices, each repeated once per unit that the site may hold."""
        order = np.argsort(self.city.twin_groups, kind="stable")
        return np.split(np.repeat(order, self.site_capacities[order]), np.cumsum(self.capacities)[:-1])

    @cached_property
    def capacities(self) -> IntArray:
        """Maximum number of units in each twin group, shape (G,)."""
        return np.bincount(self.city.twin_groups, weights=self.site_capacities).astype(int)

    @cached_property
    def floors(self) -> IntArray:
        """Minimum number of units in each twin group, shape (G,)."""
        return np.bincount(self.city.twin_groups, weights=self.site_floors).astype(int)

    @cached_property
    def count(self) -> int:
        """Number of distinct deployments, which may be too large for `len`."""
        ways = [1] + [0] * self.units  # ways to place k units in the groups so far; listing them would take too long
        for low, high in zip(self.floors, self.capacities, strict=True):
            ways = [sum(ways[k - n] for n in range(low, min(high, k) + 1)) for k in range(self.units + 1)]
        return ways[-1]

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        given = {"colocation": self.colocation, "pinned": self.pinned, "closed": self.closed}
        rules = "".join(f", {name}={value}" for name, value in given.items() if value)
        return f"<DeploymentSpace of {self.city.name!r}: units={self.units}{rules}, {self.count:,} deployments>"

    def listing(self) -> IntArray:
        """Return all distinct deployments, shape (K, p), each row in ascending order."""
        # Units that are not pinned fill the free slots from the left: slot k is followed by the next slot of its group,
        # or by the first slot of a later group.
        free = self.capacities - self.floors
        first = np.unique(np.cumsum(free) - free)
        parts = [np.split(slots, [n]) for slots, n in zip(self._slots_by_group, self.floors, strict=True)]
        slots = np.concatenate([part[1] for part in parts])
        rows, k = np.concatenate([part[0] for part in parts])[None], np.array([-1])
        for more in range(self.units - len(self.pinned), 0, -1):
            last = len(slots) - more  # enough slots must remain for the units to come
            after = [np.r_[n, first[(first > n) & (first <= last)]] for n in range(last + 1)]
            choices = [after[n] for n in k + 1]
            k = np.concatenate(choices)
            rows = np.column_stack([np.repeat(rows, [len(some) for some in choices], axis=0), slots[k]])
        return np.sort(rows, axis=1)

    def group_counts(self, sites: ArrayLike) -> IntArray:
        """Return the number of units in each twin group, shape (G,), or (K, G) for deployments of shape (K, p)."""
        groups, n = self.city.twin_groups[np.asarray(sites)], len(self.floors)
        # groups get other numbers in each row, so that one `bincount` serves all rows
        rows = np.arange(groups[..., 0].size).reshape(groups.shape[:-1])
        flat = (groups + n * rows[..., None]).ravel()
        return np.bincount(flat, minlength=n * rows.size).reshape(*rows.shape, n)

    def deployment(self, counts: IntArray) -> IntArray:
        """Return the sorted deployment, (p,), with ``counts[g]`` units at the first sites of twin group g."""
        return np.sort(np.concatenate([slots[:n] for slots, n in zip(self._slots_by_group, counts, strict=True)]))

    def fill(self, sites: IntArray) -> IntArray:
        """Return an allowed deployment, (p,), with units at ``sites`` and further ones at the first sites with room."""
        room = self.site_capacities - np.bincount(sites, minlength=self.city.n_sites)
        places = np.repeat(np.arange(self.city.n_sites), room)
        return self.canonical(np.r_[sites, places[: self.units - len(sites)]])

    def to_user_form(self, sites: IntArray) -> IntArray:
        """Return the deployment itself: unlike points of other spaces, it needs no conversion to the user's units."""
        return sites

    def to_text(self, sites: IntArray) -> str:
        """Return a deployment as text for a message."""
        return _validate.quote(sites.tolist(), most=200)

    def canonical(self, sites: ArrayLike) -> IntArray:
        """Return a deployment with its units at the first sites of their twin groups, sorted; raise unless allowed."""
        sites = check_sites(self.city, sites)
        counts = self.group_counts(sites)
        if len(sites) != self.units or (counts > self.capacities).any() or (counts < self.floors).any():
            fault = self._fault(sites, counts)
            raise InputError(f"{sites.tolist()} is not an allowed deployment of {self.units} units: {fault}.")
        return self.deployment(counts)

    def _fault(self, sites: IntArray, counts: IntArray) -> str:
        """Return why a deployment is not allowed; ``counts`` are its units in each twin group."""
        if len(sites) != self.units:
            return f"it has {len(sites)}"
        group = int(np.argmax((counts > self.capacities) | (counts < self.floors)))
        names = [repr(self.city.site_names[site]) for site in np.flatnonzero(self.city.twin_groups == group)]
        few, most = self.floors[group], self.capacities[group]
        limit = f"at most {most}" if counts[group] > most else f"at least {few}"
        return f"{limit} must be at {' and '.join(names)}, but it has {counts[group]} there"

    def __contains__(self, sites: Any) -> bool:
        try:
            self.canonical(sites)
        except InputError:
            return False
        return True

    def multiplicity(self, sites: ArrayLike) -> int:
        """Return how many sets of listed sites are equivalent to this deployment, if no site holds two units."""
        return prod(map(comb, self.capacities.tolist(), self.group_counts(self.canonical(sites)).tolist()))

    def sample(self, size: int | None = None, *, rng: Rng = None) -> IntArray:
        """Return one random allowed deployment, shape (p,), or ``size`` of them, shape (size, p).

        Units that are not pinned are drawn uniformly without replacement from the free places at all sites.
        """
        generator = _validate.generator(rng)
        if size is not None:
            return np.array([self.sample(rng=generator) for _ in range(_validate.whole_number(size, "size"))])
        places = np.repeat(np.arange(self.city.n_sites), self.site_capacities - self.site_floors)
        drawn = generator.choice(places, self.units - len(self.pinned), replace=False)
        return self.canonical(np.r_[self.pinned, drawn].astype(int))

    def swappable_groups(self, counts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the twin groups that can give a unit, (g,), and that can take one, (t,), from their units, (G,)."""
        return np.flatnonzero(counts > self.floors), np.flatnonzero(counts < self.capacities)

    def neighbours(self, sites: ArrayLike) -> IntArray:
        """Return all allowed deployments that differ from ``sites`` by one relocated unit, shape (k, p)."""
        row = self.canonical(sites)
        counts = self.group_counts(row)
        gives, takes = self.swappable_groups(counts)
        slots, free = np.concatenate(self._slots_by_group), np.cumsum(self.capacities) - self.capacities + counts
        near = np.empty((len(gives), len(takes), self.units), np.int64)
        near[..., 0] = slots[free[takes]]
        for moved, left in zip(near, slots[free[gives] - 1], strict=True):  # a group's last unit stands for any
            moved[:, 1:] = np.delete(row, np.searchsorted(row, left))
        near.sort(axis=-1)
        return cast(IntArray, near[gives[:, None] != takes])  # a move within a group changes nothing
