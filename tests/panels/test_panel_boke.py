"""The BOKE panel without a kernel: the next point is BOKE's, every control acts, nothing breaks it."""

import numpy as np
import pytest
from shown import cells

import emsopt as eo
from emsopt import panels
from emsopt.optimizers.boxes.boke import profile


def figure(panel, name):
    return cells(panel.refs["figures"])[name][0]


def test_it_opens_with_five_noisy_points_and_steps_to_the_next(drawn):
    panel = panels.boke_panel(rng=3)
    f = eo.problems.decaying_wave()
    first = panel.refs["told"]()
    assert first.shape == (5, 2)
    assert sorted((first[:, 0] * 5).astype(int)) == list(range(5))  # a Latin hypercube
    off = first[:, 1] - f.noise_free_value(first[:, :1])
    assert 0 < np.abs(off).max() < 0.5
    expected = float(figure(panel, "next"))
    panel.refs["step"].click()
    assert panel.refs["told"]()[-1, 0] == pytest.approx(expected, abs=1e-4)
    panel.refs["restart"].click()
    np.testing.assert_array_equal(panel.refs["told"](), first)


def test_the_next_point_is_boke_s():
    """The same as BOKE asked for the same constants, by its acquisition value."""
    panel = panels.boke_panel(rng=0)
    panel.refs["scale"].value, panel.refs["noise"].value = 0.1, 0.3
    told = panel.refs["told"]()
    boke = eo.optimizers.BOKE(eo.problems.decaying_wave(), noisy=True, scale=0.1, noise_sd=0.3, initial=0, rng=0)
    for x, value in told:
        boke.tell([x], value)
    bound = profile(boke)["bound"]
    at = np.interp(float(figure(panel, "next")), bound.index, bound)
    assert at >= bound.max() - 1e-3 * np.ptp(bound)
    assert float(figure(panel, "bandwidth h")) == pytest.approx(0.1 * 5**-0.2, abs=1e-4)


@pytest.mark.parametrize("rule", ["scott", "silverman", "fixed"])
def test_the_bandwidth_follows_its_rule_in_one_and_two_inputs(rule, request):
    """The figures have (5.1), (5.2) or the factor itself, and the next point is that of BOKE."""
    if rule == "fixed":
        request.getfixturevalue("drawn")
    refs = panels.boke_panel(rng=0).refs
    for d in (1, 2):
        refs["inputs"].value, refs["rule"].value, refs["scale"].value = d, rule, 0.1
        known = refs["told"]()
        assert known.shape == (5, d + 1)
        h = {"scott": 0.1 * d * 5 ** (-1 / (d + 4)), "silverman": 0.1 * d * (5 * (d + 2) / 4) ** (-1 / (d + 4))}
        assert float(cells(refs["figures"])["bandwidth h"][0]) == pytest.approx(h.get(rule, 0.1), abs=1e-4)
        refs["step"].click()
        assert len(refs["told"]()) == 6
        assert "alt='6 points" in refs["picture"].value
    x = refs["told"]()[-1, :2]
    assert ((x >= 0) & (x <= 1)).all()
    assert np.abs(known[:, :2] - x).max(axis=1).min() > 0.01
