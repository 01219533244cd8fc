"""Cubic radial basis functions: against scipy's, brute-force leave-one-out, differences, and what they reproduce."""

import numpy as np
import pytest
from scipy.interpolate import RBFInterpolator

from emsopt.errors import InputError
from emsopt.surrogates.radial_basis import fit


@pytest.mark.parametrize("d", [1, 3, 6])
def test_it_is_scipys_interpolant(d):
    rng = np.random.default_rng(d)
    X, x = rng.random((40, d)), rng.random((30, d))
    y = np.sin(4 * X).sum(axis=1)
    s, slopes = fit(X, y).predict_with_slopes(x)
    expected = RBFInterpolator(X, y, kernel="cubic", degree=1)(x)
    np.testing.assert_allclose(s, expected, atol=1e-4 * np.ptp(expected))  # the tiny ridge
    for k in range(d):
        step = 1e-6 * np.eye(d)[k]
        model = fit(X, y)
        difference = (model.predict_with_slopes(x + step)[0] - model.predict_with_slopes(x - step)[0]) / 2e-6
        np.testing.assert_allclose(slopes[:, k], difference, atol=1e-5, rtol=1e-5)


def test_smoothing_is_scipys_at_the_ridge_of_least_error_left_out():
    """The ridge chosen has the least error among scipy's fits to all points but one, and gives scipy's values."""
    rng = np.random.default_rng(0)
    X, x = rng.random((25, 2)), rng.random((10, 2))
    y = np.sin(3 * X).sum(axis=1) + 0.3 * rng.normal(size=25)
    model = fit(X, y, smooth=True)

    def error(ridge):
        kept = [np.arange(25) != i for i in range(25)]
        alone = [
            RBFInterpolator(X[k], y[k], kernel="cubic", degree=1, smoothing=ridge)(X[~k])[0] - y[~k][0]
            for k in kept
        ]
        return np.mean(np.square(alone))

    expected = RBFInterpolator(X, y, kernel="cubic", degree=1, smoothing=model.ridge)(x)
    np.testing.assert_allclose(model.predict_with_slopes(x)[0], expected, atol=1e-8)
    assert error(model.ridge) <= min(error(10 * model.ridge), error(model.ridge / 10)) + 1e-12
    assert model.ridge > 100 * fit(X, y).ridge


def test_linear_functions_are_reproduced_beyond_the_data():
    X = np.random.default_rng(1).random((12, 3))
    y = 2 + X @ [1.0, -3.0, 0.5]
    value, slope = fit(X, y).predict_with_slopes([[5.0, -4.0, 2.0]])
    assert value[0] == pytest.approx(2 + 5 + 12 + 1)
    np.testing.assert_allclose(slope[0], [1, -3, 0.5], atol=1e-9)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.5, 0.5]], [2.0]),
        ([[0.2, 0.2], [0.8, 0.2]], [1.0, 3.0]),
        ([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4], [0.5, 0.5]], [1.0, 2.0, 1.0, 2.0, 1.0]),
        ([[0.5, 0.5]] * 4 + [[0.1, 0.9]], [1.0, 1.0, 1.0, 1.0, 2.0]),
    ],
)
def test_few_points_or_points_on_a_line_are_no_trouble(X, y, smooth):
    value, slope = fit(X, y, smooth=smooth).predict_with_slopes(np.array(X[:1]))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    if not smooth:
        assert value[0] == pytest.approx(y[0], abs=1e-4)


def test_bad_shapes_are_refused():
    with pytest.raises(InputError, match="`y` must"):
        fit([[0.0], [1.0]], [1.0])
    with pytest.raises(InputError, match=r"must have shape \(n, 1\)"):
        fit([[0.0], [1.0]], [1.0, 2.0]).predict_with_slopes([[1.0, 2.0]])
