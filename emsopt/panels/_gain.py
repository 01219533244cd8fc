"""How sure a gain is: compare deployments in cities drawn from what the log leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..calls.drawn_cities import drawn_cities
from ..errors import InputError
from ..planning import compare
from ..planning.project import Result
from ._widgets import Done

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._types import Rng
    from ..city.city import City
    from ..planning.comparison import UncertainCity
    from ._trust import Trust

DRAWS = 400  # cities


def prepare(trust: Trust) -> Callable[[], str]:
    """Return a function that compares the deployments shown, and keeps their gains and what they are told by."""
    bench, log = trust.bench, trust.log()
    answer, metric, at = bench.compute(), bench.metric, bench.at
    base = bench.base(answer)
    alike = sorted(answer[base].site_names)
    names = [base, *(name for name, e in answer.items() if sorted(e.site_names) != alike)]
    # `compare` tells the last against the first: the user's deployment, or else the best.
    names[1:] = sorted(names[1:], key=lambda name: (name == "yours", name in ("optimum", "best found")))
    if len(names) == 1:
        raise InputError(f"all deployments shown are the same as {base}: move a unit, or search.")
    sites = {name: answer[name].sites for name in names}
    keys = {name: trust.key(answer[base], answer[name]) for name in names[1:]}
    tell = trust.jobs["compare"].tell

    def work() -> str:
        assert log.fit is not None
        known = drawn_cities(log.fit, **log.counting, **log.making)
        scaled = _Scaled(known, at.load * bench.city.total_rate / known.city().total_rate)
        found = compare(scaled, sites, draws=DRAWS, rng=0, capacity=at.capacity, metric=metric, progress=tell)
        table = found.to_frame().astype(float)
        for name, key in keys.items():
            gap = table.loc[name, ["difference", "difference_low", "difference_high"]].to_numpy(float)
            trust.gains[key] = -float(gap[0]), -float(gap[2]), -float(gap[1])
        title = f"How sure is the gain over {base}? ({DRAWS} cities drawn, seed 0, load {at.load:.3g})"
        note = (
            "Its mean may differ from the gain in the table of figures, as drawn cities also count where recorded "
            "drives were faster or slower than the law of all drives."
        )
        trust.keep(Result("comparison", title, (str(found), note), table))
        bench.respond()
        return Done("Compared: the figures have a row with the interval of the gain, the tab Data and trust says more.")

    return work


@dataclass(frozen=True)
class _Scaled:
    """An uncertain city with all call rates multiplied by ``theta``."""

    known: UncertainCity
    theta: float

    @property
    def weeks(self) -> float:
        return self.known.weeks

    def city(self) -> City:
        return self.known.city().scaled(self.theta)

    def draws(self, n: int, rng: Rng = None, *, vary: Iterable[str] = ("demand", "travel", "service"),
              more: float = 1.0) -> Iterator[City]:  # fmt: skip
        for city in self.known.draws(n, rng, vary=vary, more=more):
            yield city.scaled(self.theta)
