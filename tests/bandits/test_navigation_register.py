"""The register's numbers on navigation are those of the stored studies."""

import pytest

import emsopt as eo

SIX = ("gp-ts", "gp-bucb", "gp-ucb", "bi-ts", "bi-bucb", "bi-ucb")
ROUTE = ["network", "route"]


def ends(study):
    """Return the rectified regret of each run after 500 rounds, kWh, one column per policy."""
    last = eo.datasets.load_study(study).query("round == 500")
    keys = [key for key in ("network", "lengthscale", "route", "run") if key in last]
    return last.pivot(index=keys, columns="policy", values="cumulative_regret") / 1000


@pytest.mark.parametrize(
    ("network", "route"), [("monaco", "A"), ("monaco", "B"), ("luxembourg", "A"), ("luxembourg", "B")]
)
def test_figure_2(network, route, claim):
    """GP-TS, the next agent, and in how many runs GP-TS has the least regret of the paper's six agents."""
    runs = ends("navigation_agents").loc[(network, route), list(SIX)]
    mean, error = runs.mean().sort_values(), runs.sem()
    first, second = mean.index[:2]
    assert (first, second) == ("gp-ts", "bi-ts")
    place = f"Figure 2, {network.capitalize()} {route}"
    claim("navigation", place, mean[first], mean[second], (runs.idxmin(axis=1) == first).sum(), len(runs))
    claim("navigation", place, error[first], error[second], column="error")


@pytest.mark.parametrize(
    ("study", "place", "pairs"),
    [
        ("agents", "TS against BUCB and UCB (GP)", [("gp-ts", "gp-bucb"), ("gp-ts", "gp-ucb")]),
        ("agents", "TS against BUCB and UCB (BI)", [("bi-ts", "bi-bucb")]),
        ("agents", "BUCB against UCB", [("gp-bucb", "gp-ucb")]),
        ("agents", "GP against BI, exact process", [(f"gp-{rule}", f"bi-{rule}") for rule in ("ts", "bucb", "ucb")]),
        ("parametrisation", "xi", [("gp-bucb, xi 0.5", "gp-bucb")]),
        ("parametrisation", "half beta", [("gp-ucb, half beta", "gp-ucb")]),
    ],
)
def test_ratios_of_mean_regret_and_runs_in_this_order(study, place, pairs, claim):
    runs = ends(f"navigation_{study}")
    ratios = [runs[a].mean() / runs[b].mean() for a, b in pairs]
    orders = {a: (runs[a] < runs[b]).sum() for a, b in pairs}
    place = f"Figure 3, {place}" if study == "parametrisation" else f"Section 4.2, {place}"
    claim("navigation", place, *ratios, *orders.values(), len(runs))


def test_figure_3_order(claim):
    runs = ends("navigation_parametrisation")
    order = ["gp-bucb, xi 0.5", "gp-ucb, half beta", "gp-bucb", "gp-ucb"]
    assert (runs[order].diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    route = runs.loc[("luxembourg", "A"), order]
    claim("navigation", "Figure 3, order", *route.mean())
    claim("navigation", "Figure 3, order", *route.sem(), column="error")


def test_inducing_points_against_independent_edges(claim):
    sparse = ends("navigation_sparse")
    edges = ends("navigation_agents").loc[sparse.index]
    rules = ("ts", "bucb", "ucb")
    ratios = [sparse[f"svgp-{rule}"].mean() / edges[f"bi-{rule}"].mean() for rule in rules]
    lower = [(sparse[f"svgp-{rule}"] < edges[f"bi-{rule}"]).sum() for rule in rules]
    claim("navigation", "Section 4.2, GP against BI, inducing points", *ratios, *lower, len(sparse))


def test_figure_5_lengthscales(claim):
    """Mean regret with the least and the greatest lengthscale, and the ratio to independent edges."""
    runs = ends("navigation_lengthscale").groupby(["route", "lengthscale"]).mean()
    for place, policy in (("Figure 5, GP-BUCB", "gp-bucb"), ("Figure 5, GP-TS", "gp-ts"), ("Figure 5, BI", "bi-bucb")):
        ends_of_routes = [runs.loc[(route, scale), policy] for route in "AB" for scale in (0.1, 2.0)]
        claim("navigation", place, *ends_of_routes)
    ratio = runs["gp-bucb"] / runs["bi-bucb"]
    claim("navigation", "Section 4.2, lengthscale", *(ratio[route, scale] for route in "AB" for scale in (0.1, 2.0)))


@pytest.mark.parametrize(
    ("figure", "network", "route"),
    [(6, "luxembourg", "A"), (7, "luxembourg", "B"), (8, "monaco", "A"), (9, "monaco", "B")],
)
def test_edges_driven_in_figures_6_to_9(figure, network, route, claim):
    driven = eo.datasets.load_study("navigation_exploration").query("network == @network and route == @route")
    edges = driven.groupby("policy").size()
    claim("navigation", f"Figure {figure}", *edges[list(SIX)])
