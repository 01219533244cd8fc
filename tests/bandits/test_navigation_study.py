"""The navigation study: the agent of appendix B, and the size of the stored studies."""

from dataclasses import replace

import numpy as np
import pytest

import emsopt as eo
from emsopt.surrogates.graph_matern import incidence_laplacian


@pytest.fixture(scope="module")
def navigation(script):
    return script("benchmarks/navigation_study.py")


def test_kernel_parameters_are_learned_along_the_slope_of_the_lower_bound(navigation):
    """Central differences in the logarithms of all eight; a step of Adam moves each by its rate at most."""
    net = eo.roads.grid_roads(4, 4, jitter=0.3, relief=40, rng=2)
    prior = eo.bandits.navigation_prior(net)
    kernel = replace(prior.kernel, lengthscales=(np.array([1.0, 0.7, 1.5]), np.array(0.5)))
    prior = replace(prior, kernel=kernel, covariance=kernel.covariance())
    printed, rng = navigation._printed_agent, np.random.default_rng(1)
    gp = printed.PrintedGP(prior)
    values, vectors = np.linalg.eigh(incidence_laplacian(net.lengths, net.connections).toarray())
    graph = vectors * (2 * 2 / 1**2 + values) ** -2.0 @ vectors.T  # ν = 2, κ = 1
    assert prior.kernel.graph == pytest.approx(graph / np.diag(graph).mean())
    settings = gp.inducing, gp.batch, gp.rate, gp.steps, gp.context_rate, printed.RATE
    assert settings == (1000, 2500, 0.1, 1, 0.01, 0.01), "appendix B.3"
    gp, truth = printed.PrintedGP(prior, rng=0), prior.draw(rng=0)[:, 0]
    gp.inducing = 10
    assert np.abs(gp.prior.rows(np.arange(48)) - prior.covariance).max() < 1e-12
    assert gp.prior.variance == pytest.approx(prior.variance)
    for count in range(6):
        arms = rng.choice(48, 8, replace=False)
        before = gp.parameters
        gp.update(arms, truth[arms] + np.sqrt(prior.noise_variance) * rng.standard_normal(8))
        assert np.abs(gp.parameters - before).max() < (0.0101 if count == 0 else 0.02)
    kernel, parameters = gp.prior.kernel, gp.parameters
    at = gp._current_contexts(kernel).copy()
    gp._move = lambda: None
    gp._context_gradient(kernel, *eo.bandits.regression.sum_by_arm(gp._observed_arms, gp._values))
    for place in range(8):
        bounds = []
        for step in (1e-5, -1e-5):
            moved = parameters.copy()
            moved[place] += step
            gp.prior = printed.KernelPrior(prior.mean, printed.kernel_at(kernel, moved), prior.noise_variance)
            gp._move_points(at)
            bounds.append(gp.elbo())
        assert gp.gradient[place] == pytest.approx((bounds[0] - bounds[1]) / 2e-5, abs=1e-4)


@pytest.mark.parametrize(
    "part",
    ["agents", "shifted", "sparse", "parametrisation", "optimism", "lengthscale", "exploration", "simple", "printed"],
)
def test_the_stored_studies_have_the_size_they_say(navigation, part):
    stored = eo.datasets.load_study(f"navigation_{part}")
    routes = 2 if part in ("shifted", "optimism", "simple", "printed") else 4
    runs = {"exploration": 1, "printed": 1, "sparse": 3}.get(part, 5)
    assert set(stored["policy"]) == set(navigation.COMPARED[part])
    assert stored.groupby(["network", "route"]).ngroups == routes
    if part == "exploration":
        assert (stored["first_round"] + stored["visits"] <= 501).all()
        return
    if part == "sparse":
        one = stored["network"] == "luxembourg"
        assert (set(stored.loc[one, "run"]), stored.loc[one, "round"].max()) == ({0}, 150)
        stored = stored[~one]
    if part in ("agents", "shifted"):
        early = stored[(stored["round"] == 150) & (stored["policy"] != "gp-ts-joint")]
        assert (early.groupby(["network", "route", "policy"])["run"].nunique() == 20).all()
        assert early["excess_energy"].notna().all()
        stored = stored[stored["run"] < 5]
    keys = ["network", "route", "policy"]
    if part == "agents":  # six, and Thompson sampling with joint draws
        assert stored["policy"].nunique() == 6 + 1
    if part == "lengthscale":
        keys.append("lengthscale")
        assert (stored.groupby(["network", "route"])["lengthscale"].nunique() == 6).all()
    each = stored.groupby([*keys, "run"])
    assert (stored.groupby(keys)["run"].nunique() == runs).all()
    assert (each["round"].max() == {"simple": 150}.get(part, 500)).all()
    assert (each["cumulative_regret"].diff().dropna() >= -1e-9).all()
