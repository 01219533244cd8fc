"""Settings of the way from a log to advice: the options of `emsopt city` and of the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _validate
from ..calls.demand import REACH_KM
from ..errors import InputError
from ..evaluators.metrics import LATE_MIN

if TYPE_CHECKING:
    import pandas as pd

    from ..calls.log import Source
    from ..evaluators.metrics import Metric
    from ..roads import RoadNetwork

SPEED_KMH, DETOUR, TURNOUT_MIN = 40.0, 1.3, 1.5  # common values for cities, used where the log has no times


@dataclass(frozen=True)
class Settings:
    """Settings of the analysis of a log; None stands for the value in the files or, if they have none, a default.

    Attributes
    ----------
    name : str
        Name of the city.
    hours, weekdays : sequence, optional
        Hours of the day (0 to 23) and weekdays that count. Default: all.
    drop_repeats : bool
        Whether calls with the same time and place count once.
    empty_days : {"counted", "missing"}
        Whether days without calls were quiet or not recorded.
    accept_findings : bool
        Whether `advise` goes on if the checks find something wrong.
    others : {"answered", "occupying", "ignored"}
        What rows are that may be no calls of the service, by their kind or as no unit reached them, far away:
        "answered": calls. "occupying": rows keep units busy but are no demand. Service times of calls are lengthened so
        that the total load is that of all rows; it follows the calls in time and place, and falls on units in
        proportion to their calls. A row ends at the latest with the next call or row of its unit. "ignored": nothing.
    dispatch : {"nearest", "first due", "agency"}
        Which station is sent first: the closest; that which the log names for calls there or, without such a column,
        whose units answered most there; or the closest one of the agency that the log names (`emsopt.calls.dispatch`).
    cell_km, areas, area_name, crs, reach_km
        Where calls are counted, as for `aggregate_calls`. By default cells are as narrow as the answer needs.
    homes : mapping of str to str, optional
        Home station of each unit in the log.
    roads : RoadNetwork, optional
        Roads to drive on.
    travel_times : DataFrame, optional
        Minutes, one row per station and one column per atom.
    speed_kmh, detour : float
        Driving speed, and road distance over straight-line distance.
    turnout_times, service_times : float, optional
        Minutes until a unit leaves, and that a call keeps it busy; the latter may be "calls" or "stations", the source.
    today : sequence of str or int, optional
        Station of each of today's units.
    units : int, optional
        Fleet size. Default: today's or, if that is unknown, the fewest that reach the recorded mean response.
    colocate : bool
        Whether stations may have several units. They may if today's do, or if each has one.
    pinned, closed : sequence of str
        Stations that keep a unit, and that get none.
    metric : str or tuple
        "mean_response" or ("late", minutes): what is to be small.
    threshold : float
        Responses of this many minutes or more are late, in tables.
    capacity : {"loss", "queue"}
        What happens to calls that find all units busy.
    evaluator : {"exact", "approximate"}, optional
        Default: exact up to 12 units.
    hold_out : int, optional
        Days at the end of the log on which the calibration is tested. Default: a third of a log of 9 days or more.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.planning.Settings(cell_km=1.0).detour
    1.3
    """

    name: str = "city"
    hours: Sequence[int] | None = None
    weekdays: Sequence[int | str] | None = None
    drop_repeats: bool = False
    empty_days: str = "counted"
    accept_findings: bool = False
    others: str = "answered"
    dispatch: str = "nearest"
    cell_km: float | None = None
    areas: Source | None = None
    area_name: str | None = None
    crs: object = None
    reach_km: float = REACH_KM
    homes: Mapping[str, str] | None = None
    roads: RoadNetwork | None = None
    travel_times: pd.DataFrame | None = None
    speed_kmh: float | None = None
    detour: float = DETOUR
    turnout_times: float | None = None
    service_times: float | str | None = None
    today: Sequence[Any] | None = None
    units: int | None = None
    colocate: bool = False
    pinned: Sequence[Any] = ()
    closed: Sequence[Any] = ()
    metric: Metric = "mean_response"
    threshold: float = LATE_MIN
    capacity: str = "loss"
    evaluator: str | None = None
    hold_out: int | None = None


def number_in(text: str, label: str) -> float:
    """Parse a number that a user wrote, maybe with a decimal comma; ``label`` names it in errors."""
    try:
        return _validate.finite_number(float(text.replace(",", ".")), label)
    except ValueError as error:
        raise InputError(f"`{label}` must be a number; got {_validate.quote(text)}.") from error


def service_in(text: str, label: str) -> float | str:
    """Parse the service time that a user wrote: minutes, or their source, "calls" or "stations"."""
    return text.lower() if text.lower() in ("calls", "stations") else number_in(text, label)


def columns_in(parts: Sequence[str], label: str) -> dict[str, str | None]:
    """Parse texts of the form ROLE=NAME to columns by role; ROLE=none leaves a role out."""
    pairs = [part.partition("=") for part in parts if part.strip()]
    if not all(role.strip() and sign and name.strip() for role, sign, name in pairs):
        got = _validate.quote(", ".join(parts))
        raise InputError(f"`{label}` must have the form ROLE=NAME, such as time=Alarm, unit=Rig; got {got}.")
    return {role.strip(): None if name.strip() == "none" else name.strip() for role, _, name in pairs}
