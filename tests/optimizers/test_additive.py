"""The sum over inputs: its posterior and left-out predictions against dense formulas, its choice, its use in boke-auto."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.optimizers.boxes import boke_auto
from emsopt.optimizers.boxes.boke_auto import better_sum, condition_additive
from emsopt.optimizers.boxes.gp_ucb import refit
from emsopt.optimizers.values import clipped, normal_scores, standardized


def kernel(a, b, lengthscale):
    """The covariance, input by input."""
    return np.exp(-((a[:, None] - b) ** 2) / (2 * lengthscale**2)).mean(axis=2)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.random((30, 3))
    return X, standardized(np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=30)), rng.random((8, 3))


def test_posterior_and_left_out_predictions_are_those_of_dense_formulas(data):
    """Mean, scale of largest likelihood, and the deviation of a part by Schur's complement in its joint covariance with
    all observed sums; left-out predictions by processes without the point.
    """
    X, y, x = data
    process = condition_additive(X, y, [0.3], [0.01])[0]
    covariance, across = kernel(X, X, 0.3) + 0.01 * np.eye(30), kernel(x[:1, 1:2], X[:, 1:2], 0.3) / 3
    expected = kernel(x, X, 0.3) @ np.linalg.solve(covariance, y)
    np.testing.assert_allclose(sum(process.along(j, x[:, j])[0] for j in range(3)), expected, atol=1e-8)
    assert process.scale == pytest.approx(np.sqrt(y @ np.linalg.solve(covariance, y) / 30))
    left = 1 / 3 - across @ np.linalg.solve(covariance, across.T)
    assert process.along(1, x[:1, 1])[1][0] == pytest.approx(process.scale * np.sqrt(left[0, 0]))
    for process in condition_additive(X, y, [0.2, 0.5], [1e-3, 0.1]):
        for i in (0, 11, 29):
            rest = np.arange(30) != i
            without = condition_additive(X[rest], y[rest], [process.lengthscale], [process.noise_ratio])[0]
            expected = sum(without.along(j, X[i : i + 1, j])[0][0] for j in range(3))
            assert process.left_out[i] == pytest.approx(expected, abs=1e-7)


def test_the_best_point_is_the_best_of_all_combinations(data):
    X, y, _ = data
    process = condition_additive(X[:, :2], y, [0.3], [0.01])[0]
    best = process.best(0.0, np.random.default_rng(1))
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 60)] * 2), axis=-1).reshape(-1, 2)
    value = sum(process.along(j, best[j : j + 1])[0][0] for j in range(2))
    assert value >= sum(process.along(j, grid[:, j])[0] for j in range(2)).max() - 1e-3


def test_normal_scores_depend_on_the_order_only_and_are_0_at_the_box_s_median():
    rng = np.random.default_rng(0)
    X, gains = rng.random((50, 2)), rng.normal(size=50)
    scores = normal_scores(X, gains)
    np.testing.assert_allclose(normal_scores(X, np.exp(gains)), scores)
    assert (np.diff(scores[np.argsort(gains)]) > 0).all()
    median = clipped(X, gains).min()
    assert abs(scores[gains == median].item()) < 0.2
    assert normal_scores(np.array([[0.1], [0.9]]), np.array([1.0, 2.0])) == pytest.approx([-0.6745, 0.6745], abs=1e-3)

    # Half of the box is covered by equal gains, which lie in the middle: their score is 0, in any order.
    X, gains = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]]), np.array([5.0, 2.0, 7.0, 5.0, 5.0])
    scores = normal_scores(X, gains)
    np.testing.assert_allclose(scores, [0, -1.2816, 1.2816, 0, 0], atol=1e-4)
    np.testing.assert_array_equal(normal_scores(X[::-1], gains[::-1]), scores[::-1])


@pytest.mark.parametrize("shape", ["sum", "exponential of a sum", "product"])
def test_the_sum_is_used_where_it_predicts_better(shape):
    X = np.random.default_rng(3).random((80, 5))
    total = np.cos(9 * X + np.arange(5)).sum(axis=1)
    y = {"sum": total, "exponential of a sum": np.exp(2 * total), "product": np.cos(2 * X.sum(axis=1))}[shape]
    process = refit(X, standardized(clipped(X, y)), noisy=False, spread=0.7, last=None)
    chosen = better_sum(X, y, process)
    assert (chosen is None) == (shape == "product")
    assert chosen is None or chosen[0] == (shape != "sum")


def test_many_peaks_along_five_inputs_are_searched_by_coordinate(monkeypatch):
    """Regret with the steps by the sum is less than half of that without."""
    centres = np.array([0.13, 0.81, 0.37, 0.62, 0.45])
    rippled = lambda x: ((x - centres) ** 2).sum() + 0.1 * (1 - np.cos(25 * (x - centres))).sum()

    def halves(seed):
        options = {"bounds": [(0, 1)] * 5, "budget": 72, "rng": seed}
        best = eo.minimize(rippled, **options).fun
        with monkeypatch.context() as patch:
            patch.setattr(boke_auto, "COORDINATEWISE", 0.0)
            return eo.minimize(rippled, **options, target=2 * best).fun > 2 * best

    assert halves(0) or halves(1)


def test_one_input_needs_no_sum():
    X = np.linspace(0, 1, 12)
    process = refit(X[:, None], standardized(X), noisy=False, spread=0.7, last=None)
    assert better_sum(X[:, None], X, process) is None
