"""System of which operations are simulated: places, driving times, hospitals and priorities of calls.

Places are numbered: the N sites of the city first, then its M atoms, then H hospitals. Mean driving times between all
of them make a matrix of shape (P, P), P = N + M + H, once for each of R *modes* of driving, such as lights and sirens,
and ordinary traffic.

Without such a matrix (``minutes`` left out) the system is that of the hypercube model: a call keeps its unit busy for
the city's service time, exponential, and the unit is then back at its site at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..city import City
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray
from ..evaluators.evaluation import LATE_MIN

HOURS_A_WEEK = 168  # of a week, from Monday at midnight


@dataclass(frozen=True)
class Duration:
    """A random time, exponential or lognormal.

    Parameters
    ----------
    mean : float
        Minutes, at least 0.
    cv : float, optional
        Standard deviation over mean of a lognormal time; 0 for a fixed time. Default: exponential.

    Examples
    --------
    >>> Duration(12), Duration(12, cv=0)
    (Duration(mean=12.0, cv=None), Duration(mean=12.0, cv=0.0))
    """

    mean: float
    cv: float | None = None

    def __post_init__(self) -> None:
        vars(self)["mean"] = _validate.positive_number(self.mean, "mean", "min", zero=True)
        if self.cv is not None:
            vars(self)["cv"] = _validate.positive_number(self.cv, "cv", zero=True)

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm of the time, if it is lognormal; -1 if it is exponential."""
        return -1.0 if self.cv is None else float(np.sqrt(np.log1p(self.cv**2)))


@dataclass(frozen=True)
class Priority:
    """A class of calls of the same urgency.

    Parameters
    ----------
    name : str
    share : float
        Share of all calls; the shares of a system's priorities sum to 1.
    target : float
        Minutes from the call within which the first unit should arrive.
    delay : float
        Minutes from the call to the dispatch of a unit, if one is free.
    mode : int
        Mode of driving to the call, a row of ``minutes``.
    units : sequence of float
        Probabilities that a call needs 1, 2, ... units.
    on_scene : Duration
        From arrival until the unit leaves the scene.
    transport : float
        Probability that the unit takes a patient to the atom's hospital.
    takes_from : sequence of str
        Names of less urgent priorities from which a unit may be taken while it is on its way to them.

    Examples
    --------
    >>> Priority("urgent", 0.6, target=8, delay=0.8, on_scene=Duration(12), transport=0.8).units
    (1.0,)
    """

    name: str = "all"
    share: float = 1.0
    target: float = LATE_MIN
    delay: float = 0.0
    mode: int = 0
    units: tuple[float, ...] = (1.0,)
    on_scene: Duration = Duration(0, 0)
    transport: float = 0.0
    takes_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked = vars(self)
        checked["name"] = _validate.visible_text(self.name, "`name`")
        checked["share"] = _validate.probability(self.share, "share")
        checked["target"] = _validate.positive_number(self.target, "target", "min")
        checked["delay"] = _validate.positive_number(self.delay, "delay", "min", zero=True)
        checked["mode"] = _validate.whole_number(self.mode, "mode", 0)
        _validate.instance(self.on_scene, "on_scene", Duration, "emsopt.operations.Duration")
        checked["transport"] = _validate.finite_number(self.transport, "transport", 0, 1)
        units = _validate.real_array(self.units, "units", (None,), low=0)
        if abs(units.sum() - 1) > 1e-9:
            raise InputError(f"`units` must be probabilities of needing 1, 2, ... units, with sum 1; got {self.units}.")
        checked["units"] = tuple(units.tolist())
        if isinstance(self.takes_from, str) or not np.iterable(self.takes_from):
            raise InputError(f"`takes_from` must be a sequence of names, such as ('low',); got {self.takes_from!r}.")
        checked["takes_from"] = tuple(self.takes_from)


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """A city with driving times, hospitals and priorities, for simulations of operations.

    Parameters
    ----------
    city : City
        Its sites are the stations. ``travel_cv`` and ``turnout_cv`` say how driving and turnout times vary; a single
        number each.
    minutes : array_like, shape (P, P) or (R, P, P), optional
        Mean driving times between sites, atoms and hospitals; ``minutes[..., a, b]`` is from a to b. The last mode is
        that of transports and of trips home. Without it the system is that of the hypercube model; see the module.
    hospitals : int
        Number of hospitals, H; they need ``minutes``, as do ``handover`` and `Priority.on_scene`.
    hospital_of : array_like of int, shape (M,), optional
        Hospital of each atom, 0 to H - 1. Default: the nearest in the last mode.
    priorities : sequence of Priority
        The most urgent first.
    handover : Duration
        From arrival at the hospital until the unit is free.
    calls_by_hour : array_like, shape (168,) or (24,), optional
        Relative rates of calls by hour of the week (from Monday at midnight) or of the day. Their mean is set to 1.
    hospital_locations : array_like, shape (H, 2), optional
        For maps, as the locations of the city's sites.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    >>> eo.operations.System(city)
    System(2 sites, 2 atoms, 0 hospitals, 1 priority, as in the hypercube model)
    """

    city: City
    minutes: Any = None
    hospitals: int = 0
    hospital_of: Any = None
    priorities: Sequence[Priority] = (Priority(),)
    handover: Duration = Duration(0, 0)
    calls_by_hour: Any = None
    hospital_locations: Any = None

    def __post_init__(self) -> None:
        checked = vars(self)
        _validate.instance(self.city, "city", City, "emsopt.City")
        _validate.instance(self.handover, "handover", Duration, "emsopt.operations.Duration")
        hospitals = checked["hospitals"] = _validate.whole_number(self.hospitals, "hospitals", 0)
        places = self.city.n_sites + self.city.n_atoms + hospitals
        if self.minutes is not None:
            minutes = _validate.floats(self.minutes, "minutes", "min")
            minutes = minutes[None] if minutes.ndim == 2 else minutes
            checked["minutes"] = _validate.real_array(minutes, "minutes", (None, places, places), unit="min", low=0)
        checked["priorities"] = self._validate_priorities(hospitals)
        by_hour = _hour_of_week_factors(self.calls_by_hour)
        checked["calls_by_hour"] = by_hour / by_hour.mean()  # so that the city's rates stay the means
        for name in ("travel_cv", "turnout_cv"):
            if np.ndim(getattr(self.city, name)):
                raise InputError(f"`{name}` of the city must be a single number here; average it over sites and atoms.")
        if self.hospital_locations is not None:
            where = _validate.real_array(self.hospital_locations, "hospital_locations", (hospitals, 2))
            checked["hospital_locations"] = where
        checked["hospital_of"] = self._validate_hospitals(hospitals)

    def _validate_hospitals(self, hospitals: int) -> IntArray | None:
        """Return the hospital of each atom, shape (M,), by default the nearest; None if there are no hospitals."""
        if self.hospital_of is not None:
            numbers = _validate.real_array(self.hospital_of, "hospital_of", (self.city.n_atoms,))
            if not hospitals or numbers.min() < 0 or numbers.max() >= hospitals or np.any(numbers % 1):
                wanted = f"whole numbers from 0 to {hospitals - 1}"
                raise InputError(f"`hospital_of` must hold {wanted}; got {_validate.quote(numbers)}.")
            return numbers.astype(int)
        if not hospitals or self.minutes is None:
            return None
        first = self.city.n_sites + self.city.n_atoms  # hospitals come after sites and atoms
        return self.minutes[-1, self.city.n_sites : first, first:].argmin(axis=1)  # the mode of transports

    def _validate_priorities(self, hospitals: int) -> tuple[Priority, ...]:
        """Return the priorities as a tuple; raise unless their names, shares, modes and transports are consistent."""
        priorities: Any = tuple(self.priorities) if np.iterable(self.priorities) else (self.priorities,)
        for priority in priorities:
            _validate.instance(priority, "priorities", Priority, "emsopt.operations.Priority each")
        names = [priority.name for priority in priorities]
        if not names or len(set(names)) < len(names):
            raise InputError(f"`priorities` must have distinct names, at least one; got {names}.")
        shares = [priority.share for priority in priorities]
        if abs(sum(shares) - 1) > 1e-9:
            raise InputError(f"the shares of `priorities` must sum to 1; got {shares}.")
        for k, priority in enumerate(priorities):
            self._check_priority(priority, names[: k + 1], names, hospitals)
        return priorities

    def _check_priority(self, priority: Priority, urgent: list[str], names: list[str], hospitals: int) -> None:
        """Raise unless a priority fits the system; ``urgent`` has its name and those of all more urgent priorities."""
        if self.minutes is None and (hospitals or self.handover.mean or priority.on_scene.mean):
            raise InputError(
                "`hospitals`, `handover` and `on_scene` need driving times, `minutes`; without them a call takes the "
                "city's service time."
            )
        for name in priority.takes_from:
            if _validate.choice(name, "takes_from", names) in urgent:  # else calls could take a unit in turn for ever
                raise InputError(
                    f"`takes_from` of {priority.name!r} must name less urgent priorities, which come after it in "
                    f"`priorities`; got {name!r}."
                )
        if priority.mode >= self.n_modes:
            raise InputError(f"`mode` of {priority.name!r} must be below {self.n_modes}, the number of modes.")
        if priority.transport and not hospitals:
            raise InputError(f"calls {priority.name!r} are transported, but `hospitals` is 0.")

    @property
    def n_modes(self) -> int:
        """Number of modes of driving, R."""
        return 1 if self.minutes is None else len(self.minutes)

    @cached_property
    def minutes_to_place(self) -> FloatArray:
        """Driving times (min) by destination, (R, P, P): ``minutes_to_place[r, b, a]`` is from a to b in mode r."""
        n, m = self.city.travel_times.shape
        if self.minutes is None:
            minutes = np.zeros((1, n + m, n + m))
            minutes[0, :n, n:] = self.city.travel_times  # other drives are not made: units are home at once
        else:
            minutes = self.minutes
        return np.ascontiguousarray(minutes.transpose(0, 2, 1))

    def __repr__(self) -> str:
        size = f"{self.city.n_sites} sites, {self.city.n_atoms} atoms, {self.hospitals} hospitals"
        kinds = "1 priority" if len(self.priorities) == 1 else f"{len(self.priorities)} priorities"
        how = "as in the hypercube model" if self.minutes is None else f"{self.n_modes} modes"
        return f"System({size}, {kinds}, {how})"


def _hour_of_week_factors(values: ArrayLike | None) -> FloatArray:
    """Return factors for the hours of a week, (168,), from those of a week or a day; ones for None."""
    if values is None:
        return np.ones(HOURS_A_WEEK)
    factors = _validate.real_array(values, "calls_by_hour", (None,), low=0)
    if len(factors) not in (24, HOURS_A_WEEK) or not factors.min() > 0:
        got = f"got {len(factors)}, least {factors.min():g}"
        raise InputError(f"`calls_by_hour` must hold 24 or {HOURS_A_WEEK} factors above 0; {got}.")
    return np.tile(factors, HOURS_A_WEEK // len(factors)).astype(float)
