"""The live sheet in a real browser: the numbers of the Python model, without a request, by mouse, finger and keys."""

import re
from itertools import product

import numpy as np
import pytest
from test_map_page import degrees, page  # noqa: F401  # `page` is a fixture that fails on errors and requests

from emsopt import City
from emsopt.evaluators import approximate_hypercube, evaluate_all
from emsopt.maps import live_sheet
from emsopt.maps.sheets import packed

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::emsopt.errors.AccuracyWarning")]

THRESHOLD = 8.0
FIELDS = ("meanResponse", "lateShare", "percentile90", "worst", "blocked", "wait", "rho", "atomLate")
COMPUTE = f"""cases => cases.map(([packed, runs]) => {{
  const city = unpack(packed), late = lateChances(city, {THRESHOLD});
  return runs.map(([sites, scale, queue]) => {{
    const e = evaluate(city, sites, scale, queue, late);
    e.worst = e.atomResponse[e.worst];
    return {list(FIELDS)}.flatMap(name => e[name].length ? [...e[name]] : e[name]);
  }});
}})"""


def plane_city(rng, n_sites, n_atoms, travel_cv, uneven, **changes):
    """Draw a plane city with twins, ties and an area without calls; with `uneven`, more varies by place."""
    atoms, sites = rng.integers(0, 12, (n_atoms, 2)), rng.integers(0, 12, (n_sites, 2))
    sites[1] = sites[0]  # a twin
    minutes = 1.5 * np.abs(sites[:, None] - atoms).sum(axis=2)  # whole blocks, so that many are equal
    shape = (n_sites, n_atoms)
    variation = np.full(shape, travel_cv) * (rng.uniform(0.5, 1.5, shape) if uneven else 1)
    fields = {
        "arrival_rates": rng.uniform(0.1, 1, n_atoms) * (np.arange(n_atoms) > 0),
        "travel_times": minutes,
        "turnout_times": rng.uniform(0, 2, n_sites) if uneven else 1.0,
        "service_times": rng.uniform(20, 50, shape) if uneven else 30.0,
        "travel_cv": variation,
        "turnout_cv": rng.choice([0.0, 0.4], n_sites) if uneven and travel_cv else 0.0,
        "preference": rng.integers(0, 5, shape) if uneven and not travel_cv else None,
        "atom_locations": atoms.astype(float),
        "site_locations": sites.astype(float),
        "geographic": False,
    }
    return City(**fields | changes)


def test_the_page_computes_what_python_computes(page, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for travel_cv, uneven, queue, _ in product((0.0, 0.3), (False, True), (False, True), range(5)):
        city = plane_city(rng, 10, 40, travel_cv, uneven)
        runs = []
        for _ in range(5):
            sites = np.r_[0, 1, rng.integers(0, city.n_sites, rng.integers(0, 11))]
            load = rng.uniform(0.05, 0.9) * (0.85 if queue else 1)  # a queue of uneven units must be stable
            loaded = city.with_offered_load(load, len(sites))
            e = approximate_hypercube(loaded, sites, capacity="queue" if queue else "loss")
            blocked = e.queue_probability if queue else e.loss_probability
            figures = e.mean_response, e.late_fraction(THRESHOLD), e.percentile_90, e.atom_response[1:].max(), blocked
            expected.append([*figures, e.mean_wait, *e.utilizations, *e.atom_late(THRESHOLD)])
            runs.append([sites.tolist(), loaded.total_rate / city.total_rate, queue])
        cases.append([packed(city), runs])
    page.goto(live_sheet(city, [0, 1, 2]).save(tmp_path / "sheet.html").as_uri())
    found = [row for rows in page.evaluate(COMPUTE, cases) for row in rows]
    assert len(found) == len(expected) == 200
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)
