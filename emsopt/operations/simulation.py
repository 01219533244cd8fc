"""Simulation of operations: a unit drives to the scene, perhaps to a hospital, and home, and may be diverted.

Limits: for units on the way, driving times are interpolated between the two ends of their drive; the unit sent first
transports the patient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..city.deployment_space import check_sites
from ..city.travel import log_spread
from ..errors import InputError, UnstableQueueError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray, Rng, Sites
from ..evaluators._intervals import check_level, ratio_interval
from ..evaluators.simulation import atom_guide
from . import _events, _fleet
from ._events import MOST_UNITS
from ._fleet import PolicyArrays
from .policy import DISPATCH_RULES, RELOCATION_RULES, Policy
from .system import HOURS_A_WEEK, System

if TYPE_CHECKING:
    import pandas as pd

N_BATCHES = 20  # of consecutive calls: the longer a batch is, the less it depends on the one before


@dataclass(frozen=True, eq=False, repr=False)
class Operations:
    """Results of a simulation of operations.

    Attributes
    ----------
    system : System
    sites : ndarray of int, shape (p,)
        Site of each unit at the start.
    policy : Policy
    calls, lost, late, waited : ndarray, shape (B, K)
        Numbers of calls in B consecutive batches by priority: all that were counted, those lost, those answered in the
        priority's target time or later, and those answered that had to wait.
    response_sum : ndarray, shape (B, K)
        Total response times of the answered calls, from the call to the first unit's arrival, min.
    histogram : ndarray of int, shape (K, 2400)
        Answered calls by response time, in tenths of a minute; the last bin also holds those that took longer.
    atom_response, atom_late_fractions : ndarray, shape (M,)
        Mean response (min) and late fraction of each atom's answered calls; NaN if there are none.
    utilizations : ndarray, shape (p,)
        Share of a unit's hours on duty, with overtime, that calls keep it busy; NaN if it has no duty.
    relocations, taken_over : float
        Moves of free units to new sites, and units taken from a less urgent call, per hour.
    hours : float
        Simulated hours.
    trace : DataFrame or None
        The first drives, by their start: unit, call (-1 for a drive to a site without a call), origin and goal
        (places), and the minutes at which the drive begins (``leave``), would end (``arrive``), and ends (``until``).
    """

    system: System
    sites: IntArray
    policy: Policy
    calls: FloatArray
    lost: FloatArray
    late: FloatArray
    waited: FloatArray
    response_sum: FloatArray
    histogram: IntArray
    atom_response: FloatArray
    atom_late_fractions: FloatArray
    utilizations: FloatArray
    relocations: float
    taken_over: float
    hours: float
    trace: pd.DataFrame | None = None

    @property
    def mean_response(self) -> float:
        """Mean minutes from an answered call to the first unit's arrival; NaN if no call was answered."""
        return _ratio_or_nan(self.response_sum.sum(), (self.calls - self.lost).sum())

    @property
    def late_share(self) -> float:
        """Share of all answered calls that were late by the target of their priority; NaN if there is none."""
        return _ratio_or_nan(self.late.sum(), (self.calls - self.lost).sum())

    @property
    def loss_probability(self) -> float:
        """Share of all calls that were lost."""
        return _ratio_or_nan(self.lost.sum(), self.calls.sum())

    def percentile(self, share: float, priority: int | str | None = None) -> float:
        """Return the response time (min, in tenths) within which a share of the answered calls was reached."""
        counts = self.histogram[self._priority_columns(priority)].sum(axis=0).cumsum()
        reached = np.searchsorted(counts, _validate.probability(share, "share") * counts[-1])
        # the end of its bin, by which all in it are reached
        return float(reached + 1) / _events.BINS_PER_MINUTE if counts[-1] else np.nan

    def interval(self, measure: str, priority: int | str | None = None, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of "mean_response" (min), "late" or "loss" (shares), from batch means."""
        (above, below), level = self._batch_sums(measure, priority), check_level(level)
        return ratio_interval(above, below, level) if below.any() else (np.nan, np.nan)

    def _batch_sums(self, measure: str, priority: int | str | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the numerator and denominator of a measure in each batch, shapes (B,)."""
        _validate.choice(measure, "measure", ("mean_response", "late", "loss"))
        answered, columns = self.calls - self.lost, self._priority_columns(priority)
        above, below = {
            "mean_response": (self.response_sum, answered),
            "late": (self.late, answered),
            "loss": (self.lost, self.calls),
        }[measure]
        return above[:, columns].sum(axis=1), below[:, columns].sum(axis=1)

    def _priority_columns(self, priority: int | str | None) -> slice:
        """Return the slice of columns of a priority, given by number or name; None stands for all priorities."""
        if priority is None:
            return slice(None)
        names = [each.name for each in self.system.priorities]
        if isinstance(priority, str):
            k = names.index(_validate.choice(priority, "priority", names))
        else:
            k = _validate.whole_number(priority, "priority", 0, len(names) - 1)
        return slice(k, k + 1)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per priority and one for all calls: their number, response times (min), and shares.

        ``low`` and ``high`` are the 95 % interval of the mean response; ``late`` and ``waited`` are shares of the
        answered calls, and ``lost`` is one of all calls.
        """
        import pandas as pd

        rows = {}
        names = [priority.name for priority in self.system.priorities]
        for name, k in [*zip(names, range(len(names)), strict=True), ("all calls", None)]:
            part = self._priority_columns(k)
            calls, lost = self.calls[:, part].sum(), self.lost[:, part].sum()
            answered = calls - lost
            low, high = self.interval("mean_response", k)
            rows[name] = {
                "calls": int(calls),
                "mean_response_min": _ratio_or_nan(self.response_sum[:, part].sum(), answered),
                "low": low,
                "high": high,
                "percentile_90_min": self.percentile(0.9, k),
                "late": _ratio_or_nan(self.late[:, part].sum(), answered),
                "waited": _ratio_or_nan(self.waited[:, part].sum(), answered),
                "lost": _ratio_or_nan(lost, calls),
            }
        return pd.DataFrame(rows).T.astype({"calls": int})

    def __repr__(self) -> str:
        return (
            f"Operations(mean response {self.mean_response:.2f} min, late {100 * self.late_share:.1f} %, "
            f"{self.relocations:.2f} relocations an hour, {self.hours:,.0f} hours)"
        )

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(float_format=lambda value: f"{value:.3f}")


def simulate(
    system: System,
    sites: Sites,
    *,
    policy: Policy | None = None,
    shifts: ArrayLike | None = None,
    capacity: str = "queue",
    calls: int = 100_000,
    warmup: int | None = None,
    trace: int = 0,
    rng: Rng = None,
) -> Operations:
    """Simulate the operations of a fleet: its drives to calls, hospitals and sites.

    Parameters
    ----------
    system : System
    sites : array_like of int, shape (p,)
        Site of each unit; a site may occur several times.
    policy : Policy, optional
        Default: the closest unit is sent, and units return to their sites.
    shifts : array_like, shape (p, 2), optional
        Hours of the day at which each unit's duty begins and ends, whole numbers from 0 to 24; it may span midnight,
        and lasts all day if both are equal. Default: always on duty. Units finish their calls after a shift ends.
    capacity : {"queue", "loss"}
        Whether a call that finds no unit waits, the most urgent first, or is lost.
    calls, warmup : int
        Number of calls that are counted, at least 20, and of calls before these (default: a tenth).
    trace : int
        Number of drives to record, for a map.
    rng : numpy.random.Generator or seed, optional
        The same seed gives the same calls, with the same times, to every fleet and policy.

    Raises
    ------
    UnstableQueueError
        If the waiting calls of a priority need more than 4,096 units.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    >>> result = eo.operations.simulate(eo.operations.System(city), [0, 1], capacity="loss", rng=0)
    >>> abs(result.loss_probability - 0.4) < 0.02  # Erlang B: 2 units, 2 calls in a service time
    True
    """
    system = _validate.instance(system, "system", System, "emsopt.operations.System")
    policy = _validate.instance(policy or Policy(), "policy", Policy, "emsopt.operations.Policy")
    city = system.city
    sites = check_sites(city, sites)
    p, K = len(sites), len(system.priorities)
    offsets, table = policy.offsets_and_table(city, p)
    _validate.choice(capacity, "capacity", ("queue", "loss"))
    trace = _validate.whole_number(trace, "trace", 0)
    calls = _validate.whole_number(calls, "calls", N_BATCHES)
    warmup = calls // 10 if warmup is None else _validate.whole_number(warmup, "warmup", 0)
    seed = int(_validate.generator(rng).integers(2**62))
    duty = _duty_hours(shifts, p)

    fleet = _fleet.zero_records(p, _fleet.UNIT)
    for name in ("home", "first_home", "origin", "goal"):
        fleet[name] = sites
    fleet["on"], fleet["row"] = duty[:, 0], -1
    tally = _events.Counters(
        batches=np.zeros((N_BATCHES, K, 5)),
        histogram=np.zeros((K, _events.BINS), int),
        atoms=np.zeros((city.n_atoms, 3)),
        moves=np.zeros(2),
        trace=np.full((trace, 7), np.nan),
    )
    rules = _policy_arrays(system, policy, offsets, table, capacity == "queue")
    most = p * MOST_UNITS + K * _events.MAX_QUEUE  # an open call has a unit or waits
    opened = _fleet.zero_records(most, _fleet.CALL)
    begin, end = _events.run_events(seed, warmup, calls, duty, _system_arrays(system), rules, fleet, opened, tally)
    if end < 0:
        raise UnstableQueueError(
            f"calls that wait need more than {_events.MAX_QUEUE:,} units: {p} {'unit' if p == 1 else 'units'} cannot "
            "serve all calls. Add units, lengthen their shifts, lower the load, or use capacity='loss'."
        )
    counts, (answered, response, late) = tally.batches, tally.atoms.T
    weeks, minute = np.divmod([begin, end], 60 * HOURS_A_WEEK)
    # Minutes on duty until begin and until end: whole weeks, and in the last one full hours and a part.
    each = [
        weeks * 60 * on.sum() + np.interp(minute, 60 * np.arange(HOURS_A_WEEK + 1), 60 * np.append(0, on.cumsum()))
        for on in duty
    ]
    with np.errstate(invalid="ignore"):
        by_atom = response / answered, late / answered
        utilizations = fleet["worked"] / (np.diff(each)[:, 0] + fleet["overtime"])
    hours = (end - begin) / 60
    traced = None
    if trace:  # a search simulates often: most runs need no table
        import pandas as pd

        names = ["unit", "call", "origin", "goal", "leave", "arrive", "until"]
        drives = pd.DataFrame(tally.trace, columns=names).dropna().astype(dict.fromkeys(names[:4], int))
        traced = drives.sort_values("leave", kind="stable", ignore_index=True)
    return Operations(
        system, sites, policy, counts[..., 0], counts[..., 1], counts[..., 3], counts[..., 4], counts[..., 2],
        tally.histogram, *by_atom, utilizations, tally.moves[0] / hours, tally.moves[1] / hours, hours, traced,
    )  # fmt: skip


def _ratio_or_nan(part: float, whole: float) -> float:
    """Return ``part / whole``, or NaN if ``whole`` is 0."""
    return float(part / whole) if whole else np.nan


def _system_arrays(system: System) -> _events.SystemArrays:
    """Convert a system to numbers and arrays for compiled code."""
    city, priorities = system.city, system.priorities
    cumulative, guide = atom_guide(city)
    most = max(len(priority.units) for priority in priorities)
    if most > MOST_UNITS:
        raise InputError(f"a call may need at most {MOST_UNITS} units; `units` of a priority has {most} entries.")
    units = np.ones((len(priorities), most))
    classes = _fleet.zero_records(len(priorities), _fleet.CLASS)
    for k, priority in enumerate(priorities):
        units[k, : len(priority.units) - 1] = np.cumsum(priority.units)[:-1]  # the last stays exactly 1
        for name in ("share", "delay", "mode", "transport", "target"):
            classes[name][k] = getattr(priority, name)
        classes["scene"][k], classes["scene_spread"][k] = priority.on_scene.mean, priority.on_scene.spread
    classes["share"] = np.cumsum(classes["share"])
    classes["share"][-1] = 1  # exactly, or a draw could find no class
    first = city.n_sites + city.n_atoms  # hospitals are numbered after sites and atoms
    return _events.SystemArrays(
        rate=city.total_rate / 60,
        trips=system.minutes is not None,
        turnout_spread=float(log_spread(city.turnout_cv)),
        drive_spread=float(log_spread(city.travel_cv)),
        handover=system.handover.mean,
        handover_spread=system.handover.spread,
        by_hour=system.calls_by_hour,
        atoms=cumulative,
        guide=guide,
        classes=classes,
        units=units,
        takes=np.array([[other.name in priority.takes_from for other in priorities] for priority in priorities]),
        to_place=system.minutes_to_place,
        service=city.service_times,
        hospital_of=np.zeros(city.n_atoms, int) if system.hospital_of is None else system.hospital_of + first,
    )


def _policy_arrays(system: System, policy: Policy, offsets: FloatArray, table: IntArray, queue: bool) -> PolicyArrays:
    """Convert a policy to numbers and arrays for compiled code."""
    city = system.city
    from_sites = system.minutes_to_place[0, city.n_sites : city.n_sites + city.n_atoms, : city.n_sites].T
    # Atoms that the same sites cover are one group.
    patterns, group = np.unique(from_sites <= (policy.coverage or 0), axis=1, return_inverse=True)
    near = [np.flatnonzero(row) for row in patterns]
    sites = _fleet.zero_records(city.n_sites, _fleet.SITE)
    sites["turnout"], sites["offset"] = city.turnout_times, offsets
    sites["near_end"] = np.cumsum([len(groups) for groups in near])
    sites["near"][1:] = sites["near_end"][:-1]
    return PolicyArrays(
        dispatch=DISPATCH_RULES.index(policy.dispatch),
        on_the_way=policy.on_the_way,
        queue=queue,
        relocation=RELOCATION_RULES.index(policy.relocation),
        moves=len(table) if policy.instant else policy.moves,  # all move at once
        drive_factor=0.0 if policy.instant else 1.0,
        patience=np.inf if policy.patience is None else policy.patience,
        sites=sites,
        preference=city.response_times if city.preference is None else city.preference,
        table=table,
        near=np.concatenate(near),
        weight=np.bincount(group.ravel(), city.demand_shares).astype(float),
        powers=policy.busy ** np.arange(len(table) + 1.0),
    )


def _duty_hours(shifts: ArrayLike | None, units: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return whether each unit is on duty in each hour of the week, shape (p, 168)."""
    if shifts is None:
        return np.ones((units, HOURS_A_WEEK), bool)
    hours = _validate.real_array(shifts, "shifts", (units, 2), low=0)
    if hours.max() > 24 or np.any(hours % 1):
        raise InputError(f"`shifts` must hold whole hours from 0 to 24; got {_validate.quote(hours.tolist())}.")
    begin, end = hours.T[:, :, None]
    hour = np.arange(HOURS_A_WEEK) % 24
    return np.where(begin < end, (begin <= hour) & (hour < end), (begin <= hour) | (hour < end))
