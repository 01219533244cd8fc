"""What the dashboard knows of a city: the city, how it was made, and, while the page is open, its log of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from .._types import FloatArray
    from ..calls import CallLog, Checks, Fit
    from ..city.city import City
    from ..planning.project import Project, Result
    from ..roads import RoadNetwork


ARRAYS = ("travel_times", "service_times", "preference", "travel_cv", "turnout_cv")


@dataclass(frozen=True, eq=False)
class Log:
    """A log of calls, which is never saved.

    Attributes
    ----------
    calls : CallLog
        The calls that count.
    stations : DataFrame
    fit : Fit or None
        What was calibrated from the log; None if it lacks the times.
    counting : mapping
        Options of `aggregate_calls` with which the city was made.
    making : mapping
        Options of `Fit.city` or `Demand.city` with which the city was made.
    checks : Checks
        What looks wrong in it, with rows of the file.
    roads : RoadNetwork or None
        Those with which the fit was made.
    homes : mapping of str to str, optional
        Station of each unit, likewise, if it was given.
    """

    calls: CallLog
    stations: pd.DataFrame
    fit: Fit | None
    counting: Mapping[str, Any]
    making: Mapping[str, Any]
    checks: Checks
    roads: RoadNetwork | None
    homes: Mapping[str, str] | None = None


@dataclass(frozen=True, eq=False)
class Opened:
    """A city that was opened.

    Attributes
    ----------
    city : City
    units : int
        Fleet size to begin with.
    today : tuple of int or None
        Site of each of today's units.
    about : mapping
        How the city was made: columns of the table of scenarios.
    results : sequence of Result
        What was checked and calibrated.
    by_hour : ndarray, shape (24, M), or None
        Calls per hour of each atom at each hour of the day.
    log : Log or None
    settings : mapping
        Settings to begin with, as `Workbench.state` returns them.
    said : str
        What was read and assumed.
    """

    city: City
    units: int
    today: tuple[int, ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[Result] = ()
    by_hour: FloatArray | None = None
    log: Log | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""

    def __post_init__(self) -> None:
        # Sums depend on how arrays lie in memory, in the last digit, and a file does not keep that.
        arrays = {name: getattr(self.city, name) for name in ARRAYS}
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items() if np.ndim(array)}
        vars(self)["city"] = self.city.replace(**plain)
        if self.by_hour is not None:
            vars(self)["by_hour"] = np.ascontiguousarray(self.by_hour)

    @classmethod
    def of(cls, project: Project) -> Opened:
        """Return the city of a project."""
        settings = project.settings
        units = settings.get("units", 1)
        return cls(
            project.city,
            units if isinstance(units, int) and units > 0 else 1,
            about=project.about,
            results=project.results,
            by_hour=project.by_hour,
            settings=settings,
        )
