"""Bars of simulated operations: what is drawn is what the trace says."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError
from emsopt.operations import Duration, Policy, Priority, System, simulate

pytest.importorskip("matplotlib", reason="needs the package matplotlib")
from matplotlib.figure import Figure

from emsopt.plots import drives


def one_unit(policy=None):
    """A unit that stays on scene for 10 min, 4 min from its station."""
    city = eo.City([1.0], [[4.0]], turnout_times=0, service_times=30)
    system = System(city, [[0.0, 4.0], [4.0, 0.0]], priorities=[Priority(on_scene=Duration(10, cv=0))])
    return simulate(system, [0], policy=policy, calls=50, warmup=0, trace=1_000, rng=0)


def lengths(result):
    """Return the minutes of the bars of each kind."""
    _, ax = drives(result, hours=1_000, ax=Figure())
    return [np.array([bar.get_width() * 60 for bar in bars]) for bars in ax.containers]


def test_bars_have_the_lengths_of_drives_and_work():
    result = one_unit()
    to_call, at_work, to_site = lengths(result)
    minutes = (result.trace["until"] - result.trace["leave"]).to_numpy()
    assert len(to_call) == len(at_work) >= 50
    assert to_call == pytest.approx(minutes[result.trace["call"] >= 0])
    assert to_site == pytest.approx(minutes[result.trace["call"] < 0])
    assert at_work[:-1] == pytest.approx(10.0)  # the last is cut


def test_units_that_are_busy_until_they_are_home_drive_home_all_the_same():
    to_call, at_work, to_site = lengths(one_unit(Policy(on_the_way=False)))
    assert to_call == pytest.approx(4.0)
    assert at_work[:-1] == pytest.approx(10.0)
    assert to_site == pytest.approx(4.0)
    assert len(to_site) >= 49


def test_a_result_without_drives_in_these_hours_is_refused():
    with pytest.raises(InputError, match="no recorded drive between 5000 and 5006 h"):
        drives(one_unit(), begin=5_000, ax=Figure())
    with pytest.raises(InputError, match="simulate with a larger `trace`"):
        drives(simulate(one_unit().system, [0], calls=50, rng=0), ax=Figure())
