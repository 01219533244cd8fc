"""Numbers that the register of claims and benchmarks/RESULTS.md quote from the stored navigation studies, computed from them."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

import emsopt as eo
from emsopt.bandits.policies import rectified_mean

ROUTES = [(network, route) for network in ("Luxembourg", "Monaco") for route in "AB"]
SIX = ["gp-ts", "gp-bucb", "gp-ucb", "bi-ts", "bi-bucb", "bi-ucb"]


@cache
def study(part):
    table = eo.datasets.load_study(f"navigation_{part}")
    return table.assign(network=table["network"].str.capitalize())


@cache
def monaco():
    net = eo.datasets.load_roads("monaco")
    return net, eo.bandits.navigation_prior(net)


def register(place):
    """Return one row of the register."""
    rows = eo.datasets.load_claims("navigation")
    (row,) = rows[rows["place"] == place].itertuples()
    return row


def ends(part, column="cumulative_regret", last=500, runs=5):
    """Return values after the last round in kWh, one row per route and run, one column per policy."""
    table = study(part).query("round == @last and run < @runs")
    return table.pivot(index=["network", "route", "run"], columns="policy", values=column) / 1000


def early_energy():
    return ends("agents", "excess_energy", 150, 20)[SIX]


def by_route(values):
    return values.groupby(level=[0, 1])


def half_width(values):
    """Return half the width of the 95 % interval of a mean, by Student's t."""
    return stats.t.ppf(0.975, len(values) - 1) * values.sem()


def is_clear(differences):
    """Return whether the 95 % interval of the mean of paired differences lies above 0."""
    return differences.mean() > half_width(differences)


def joined(values, text="{:.1f}", between=", "):
    return between.join(text.format(value) for value in values)


def counted(values):
    """Return whole numbers as text: 3, 4 and 4."""
    return " and ".join(filter(None, [joined(values[:-1], "{}"), str(values[-1])]))


@pytest.mark.parametrize(("network", "route"), ROUTES)
def test_figure_2(network, route):
    regret = ends("agents")[SIX].loc[(network, route)]
    energy = early_energy().loc[(network, route), SIX[:3]]
    mean = regret.mean().sort_values()
    assert mean.index[:2].tolist() == ["gp-ts", "bi-ts"]
    first = (regret["gp-ts"] == regret.min(axis=1)).sum()
    early = ends("agents", last=150, runs=20).loc[(network, route), SIX].pipe(lambda r: r.sub(r["gp-ts"], axis=0))
    assert early.mean().nsmallest(2).index.tolist() == ["gp-ts", "bi-ts"]
    row = register(f"Figure 2, {network} {route}")
    assert row.ours == (
        f"regret {mean.iloc[0]:.1f} kWh, next BI-TS {mean.iloc[1]:.1f}; least in {first} of 5 runs; in 150 rounds, 20 "
        f"runs, BI-TS has {early['bi-ts'].mean():.1f} kWh more; energy of GP-TS, GP-BUCB, GP-UCB there "
        f"{joined(energy.mean())} kWh above the path of least rectified cost"
    )
    errors = f"{joined(regret[mean.index[:2]].sem(), between='; ')}; {early['bi-ts'].sem():.1f}"
    assert row.error == f"{errors}; {joined(energy.sem())}"
    assert not is_clear(regret["bi-ts"] - regret["gp-ts"]), "not in five runs"
    assert all(is_clear(regret[p] - regret["gp-ts"]) for p in ("gp-bucb", "gp-ucb", "bi-bucb", "bi-ucb"))
    clear = [is_clear(early[p]) for p in SIX[1:]]
    assert clear == [True, True, (network, route) != ("Monaco", "A"), True, True]
    saved = [early_energy().loc[(network, route)].eval(f"`{p}` - `gp-ts`") for p in ("gp-bucb", "gp-ucb")]
    assert [is_clear(values) for values in saved] == [network == "Luxembourg"] * 2
    assert not any(is_clear(-values) for values in saved)
    assert row.verdict == "in part", "tied with BI-TS in the paper's five runs"


def test_simple_paths():
    """Figure 2 in Monaco with paths that pass no junction twice: what changes, and that GP-TS stays ahead."""
    simple, agents = study("simple").query("round == 150"), study("agents").query("round == 150 and run < 5")
    both = simple.merge(agents, on=["network", "route", "run", "policy"], suffixes=("", "_line_graph"))
    assert len(both) == len(simple) == 60
    loops = 100 * both.groupby("route")["loops"].mean() / 150
    costs = both.groupby(["route", "run"])[["best_cost", "best_cost_line_graph"]].first()
    dearer = 100 * (costs["best_cost"] / costs["best_cost_line_graph"] - 1).groupby("route").mean()
    assert (costs["best_cost"] >= costs["best_cost_line_graph"]).all()
    regret = ends("simple", last=150)[SIX].loc["Monaco"]
    said = [f"{joined(regret.loc[route].mean())} ({route})" for route in "AB"]
    row = register("Section 4.1, simple paths")
    assert row.ours == (
        f"Monaco, 150 rounds, five runs: the shortest path of the line graph passes a junction twice in {loops['A']:.0f} "
        f"(A) and {loops['B']:.0f} % (B) of the rounds; the best simple path costs {dearer['A']:.0f} and "
        f"{dearer['B']:.0f} % more; regret of {', '.join(map(str.upper, SIX))} with simple paths {', '.join(said)} kWh"
    )
    assert row.error == "; ".join(joined(regret.loc[route].sem()) for route in "AB")
    for part in (regret, ends("agents", last=150).loc["Monaco"]):  # alike with and without
        for _, lead in part.sub(part["gp-ts"], axis=0)[SIX[1:]].groupby("route"):
            assert [is_clear(lead[policy]) for policy in lead] == [True, True, False, True, True]
            assert (lead.mean() > 0).all()


@pytest.mark.parametrize(
    ("place", "pairs"),
    [
        ("Section 4.2, TS against BUCB and UCB (GP)", [("gp-ts", "gp-bucb"), ("gp-ts", "gp-ucb")]),
        ("Section 4.2, TS against BUCB and UCB (BI)", [("bi-ts", "bi-bucb"), ("bi-ts", "bi-ucb")]),
        ("Section 4.2, GP against BI, exact process", [(f"gp-{r}", f"bi-{r}") for r in ("ts", "bucb", "ucb")]),
        ("Section 4.2, BUCB against UCB", [("gp-bucb", "gp-ucb")]),
    ],
)
def test_order_of_agents(place, pairs):
    """Ratios of regret over all routes, and on how many routes energy differs clearly."""
    regret, energy = ends("agents"), early_energy()
    assert all((by_route(regret[a] - regret[b]).mean() < 0).all() for a, b in pairs), "on every route"
    assert all(is_clear(regret[b] - regret[a]) for a, b in pairs)
    early = ends("agents", last=150, runs=20)
    behind = [(a, *where) for a, b in pairs for where in ROUTES if not is_clear((early[b] - early[a]).loc[where])]
    assert behind == ([("gp-ts", "Monaco", "A")] if ("gp-ts", "bi-ts") in pairs else [])
    where_clear = [[where for where in ROUTES if is_clear((energy[b] - energy[a]).loc[where])] for a, b in pairs]
    if "TS against" in place:
        assert where_clear == [ROUTES[:2]] * 2, "both routes of Luxembourg"
    if all(policy.startswith("gp") for pair in pairs for policy in pair):
        assert all(is_clear((regret[b] - regret[a]).loc[where]) for a, b in pairs for where in ROUTES), "in five runs"
    assert not any(is_clear((energy[a] - energy[b]).loc[where]) for a, b in pairs for where in ROUTES)
    ratios = [f"{regret[a].sum() / regret[b].sum():.2f} of {b.upper()}" for a, b in pairs]
    runs = [int((regret[a] < regret[b]).sum()) for a, b in pairs]
    row = register(place)
    assert row.verdict == "reproduced"
    assert row.ours == (
        f"regret {', '.join(ratios)}; less in {counted(runs)} of 20 runs; energy clearly less on "
        f"{counted([*map(len, where_clear)])} of 4 routes (150 rounds, 20 runs)"
    )


def test_order_of_agents_with_inducing_points():
    def compared(part, network, last, runs):
        sparse, regret = (ends(name, last=last, runs=runs).loc[[network]] for name in (part, "agents"))
        return [(sparse[f"svgp-{rule}"], regret[f"bi-{rule}"], rule.upper()) for rule in ("ts", "bucb", "ucb")]

    def told(pairs):
        ratios = [f"{ours.sum() / theirs.sum():.2f} of BI-{rule}" for ours, theirs, rule in pairs]
        less = [int((ours < theirs).sum()) for ours, theirs, _ in pairs]
        return f"{', '.join(ratios)}; less in {counted(less)} of {len(pairs[0][0])} runs"

    said, errors = [], []
    for network, last, runs in (("Monaco", 500, 3), ("Luxembourg", 150, 1)):
        pairs = compared("sparse", network, last, runs)
        said.append(told(pairs))
        errors.append(joined([f"{x.mean():.1f} +- {half_width(x):.1f}" for x in (b - a for a, b, _ in pairs)], "{}"))
        assert [is_clear(ours - theirs) for ours, theirs, _ in pairs] == [False, *[network == "Monaco"] * 2]
        assert not any(is_clear(theirs - ours) for ours, theirs, _ in pairs)
    printed, plain = (compared(part, "Monaco", 500, 1) for part in ("printed", "sparse"))
    assert not any(is_clear(sign * (ours - theirs)) for ours, theirs, _ in printed for sign in (1, -1))
    without = joined([ours.sum() / theirs.sum() for ours, theirs, _ in plain], "{:.2f}")
    row = register("Section 4.2, GP against BI, inducing points")
    assert row.ours == (
        f"regret {said[0]}; Luxembourg, 150 rounds: {said[1]}; with all that appendix B prints, Monaco, 500 rounds, "
        f"one run: {told(printed)} (without moving contexts and learning the kernel {without})"
    )
    assert row.error == f"BI minus these, 95 % intervals: {errors[0]} kWh; Luxembourg {errors[1]} kWh"


LOWEST, HALF = "gp-bucb, xi 0.5", "gp-ucb, half beta"
FIGURE_3 = {
    LOWEST: eo.bandits.BayesUCB(xi=0.5),
    HALF: eo.bandits.UCB(0.5),
    "gp-bucb": eo.bandits.BayesUCB(),
    "gp-ucb": eo.bandits.UCB(),
}


@pytest.mark.parametrize(("network", "route"), ROUTES)
def test_figure_3_by_route(network, route):
    monaco, row = network == "Monaco", register(f"Figure 3, order, {network} {route}")
    regret, energy = (
        ends("parametrisation", *of)[[*FIGURE_3]].loc[(network, route)]
        for of in ((), ("excess_energy", 500 if monaco else 150))
    )
    steps, in_energy = (values.diff(axis=1).iloc[:, 1:] for values in (regret, energy))
    assert (steps > 0).all(axis=None), "in every run"
    assert all(is_clear(steps[policy]) for policy in steps)
    assert [is_clear(in_energy[policy]) for policy in steps] == [False, not monaco, not monaco]
    assert not any(is_clear(-in_energy[policy]) for policy in steps)
    betas = np.array([rule.beta(np.arange(1, 501), 3003 if monaco else 5680) for rule in FIGURE_3.values()])
    first = np.flatnonzero((np.diff(betas, axis=0) <= 0).any(axis=0)).max() + 2
    assert f"the order of their parameters from round {first} on" in row.why
    assert (betas.argmin(axis=0)[: first - 1] == 1).all(), "half of UCB's"
    assert row.ours == f"{joined(regret.mean(), between=' < ')} kWh"
    assert row.error == joined(regret.sem(), between="; ")


def test_figure_3():
    regret = ends("parametrisation")
    for place, a, b in (("Figure 3, xi", LOWEST, "gp-bucb"), ("Figure 3, half beta", HALF, "gp-ucb")):
        runs, ratio = (regret[a] < regret[b]).sum(), regret[a].sum() / regret[b].sum()
        assert register(place).ours == f"{ratio:.2f} of the regret; less in {runs} of 20 runs"
        for network, last, clearly in (("Luxembourg", 150, True), ("Monaco", 500, False)):
            energy = ends("parametrisation", "excess_energy", last).loc[network]
            for _, saved in (energy[b] - energy[a]).groupby("route"):
                assert (is_clear(saved), is_clear(-saved)) == (clearly, False), (place, network)
        assert all(is_clear((regret[b] - regret[a]).loc[where]) for where in ROUTES)
    sampled = ends("agents")["gp-ts"]
    assert all(is_clear((regret[LOWEST] - sampled).loc[where]) for where in ROUTES)
    sampled = by_route(sampled).mean()
    ratios = by_route(regret[LOWEST]).mean() / sampled
    less = by_route(ends("optimism")).mean()[[f"gp-ucb, {factor} beta" for factor in (0.25, 0.1, 0.03, 0.01)]]
    routes = [f"{joined(less.loc[('Monaco', r)])} (Monaco {r}; GP-TS {sampled['Monaco', r]:.1f})" for r in "AB"]
    assert register("Section 4.2, overexploration").ours == (
        f"least optimistic of the four: {ratios.min():.1f} to {ratios.max():.1f} times the regret of GP-TS; with 0.25, "
        f"0.1, 0.03, 0.01 of UCB's beta {', '.join(routes)} kWh"
    )
    assert (less.iloc[:, :3].diff(axis=1).iloc[:, 1:] < 0).all(axis=None)


def by_lengthscale(network, last):
    """Return mean and standard error of the regret after some rounds, kWh: a row per route, policy and lengthscale."""
    table = study("lengthscale").query("network == @network and round == @last")
    kwh = (table["cumulative_regret"] / 1000).rename("kwh")
    return kwh.groupby([table["route"], table["policy"], table["lengthscale"]]).agg(["mean", "sem"])


def rises(network, last):
    """Return how much more regret each run has at the longest lengthscale than at the shortest, kWh."""
    table = study("lengthscale").query("network == @network and round == @last and lengthscale in (0.1, 2)")
    wide = table.pivot(index=["route", "run"], columns=["lengthscale", "policy"], values="cumulative_regret") / 1000
    assert (wide.groupby("route").size() == 5).all()
    return wide[2.0] - wide[0.1], np.log(wide[2.0] / wide[0.1])


def trends(rise):
    """Return what differs beyond chance from the shortest to the longest lengthscale: 1 if it rises, -1 if it falls."""
    signs = rise.groupby("route").agg(lambda values: is_clear(values) - int(is_clear(-values))).stack()
    return signs[signs != 0].to_dict()


def listed(groups, policies):
    """Return the means by route and lengthscale as text, and the least and largest errors."""
    routes = [(policy, route, groups.loc[(route, policy)]) for policy in policies for route in "AB"]
    numbers = [f"{policy.upper()} {route} {joined(group['mean'])}" for policy, route, group in routes]
    errors = [joined([group["sem"].min(), group["sem"].max()], between=" to ") for *_, group in routes]
    return f"at lengthscales {joined(routes[0][2].index, '{:g}')}: {'; '.join(numbers)} kWh", "; ".join(errors)


def relative(groups):
    """Return the regret of GP-BUCB over that of BI-BUCB at the shortest and the longest lengthscale, as text."""
    means = groups["mean"].unstack("policy")
    ratio = means["gp-bucb"] / means["bi-bucb"]
    return ", ".join(f"{ratio[route, 0.1]:.2f} to {ratio[route, 2.0]:.2f} ({route})" for route in "AB")


def test_figure_5():
    """Figures 4 and 5: of four agents on four routes one moves beyond chance in kWh; in ratios see below."""
    networks, relatives = ("Monaco", "Luxembourg"), []
    moved = [{("A", "gp-bucb"): -1}, {}], [{("A", "gp-bucb"): -1}, {("B", "bi-ts"): 1}]
    for network, in_kwh, in_ratio in zip(networks, *moved, strict=True):
        rise, in_logs = rises(network, 500)
        assert (trends(rise), trends(in_logs)) == (in_kwh, in_ratio)
        assert all(is_clear(own) for _, own in (in_logs["bi-bucb"] - in_logs["gp-bucb"]).groupby("route"))
        relatives.append(f"{network} {relative(by_lengthscale(network, 500))}")
    widths = [rises(n, 500)[0][["bi-bucb", "bi-ts"]].groupby("route").agg(half_width).max(axis=None) for n in networks]
    assert f"up to {max(widths):.0f} kWh" in register("Figure 5, BI").why
    for place, policies in (("GP-BUCB", ["gp-bucb"]), ("GP-TS", ["gp-ts"]), ("BI", ["bi-bucb", "bi-ts"])):
        row = register(f"Figure 5, {place}")
        numbers, errors = listed(by_lengthscale("Monaco", 500), policies)
        assert (row.ours, row.error) == (f"Monaco, {numbers}", errors)
    row = register("Section 4.2, lengthscale")
    assert row.ours == f"regret of GP-BUCB relative to BI-BUCB from 0.1 to 2: {'; '.join(relatives)}"


def test_figures_4_and_5_in_luxembourg():
    groups, row = by_lengthscale("Luxembourg", 500), register("Figures 4 and 5, Luxembourg")
    numbers, errors = listed(groups, ["gp-bucb", "gp-ts", "bi-bucb", "bi-ts"])
    assert row.ours == f"{numbers}; GP-BUCB relative to BI-BUCB from 0.1 to 2: {relative(groups)}"
    assert row.error == errors
    means = groups["mean"].unstack("lengthscale").xs("gp-bucb", level="policy")
    assert (means[2.0] < means[0.1]).all()
    assert trends(rises("Luxembourg", 500)[0]) == {}


@pytest.mark.parametrize(("number", "network", "route"), [(6 + k, *place) for k, place in enumerate(ROUTES)])
def test_figures_6_to_9(number, network, route):
    table = study("exploration").query("network == @network and route == @route")
    seen = table.groupby("policy").size()[SIX]
    assert register(f"Figure {number}").ours == f"{', '.join(f'{p.upper()} {n}' for p, n in seen.items())} edges"
    own = ends("agents", "edges_seen").loc[(network, route)]
    assert (1000 * own.loc[0, SIX]).tolist() == pytest.approx(seen.tolist()), "the first run"
    for few, many in [(f"{kind}-ts", f"{kind}-{rule}") for kind in ("gp", "bi") for rule in ("bucb", "ucb")]:
        assert seen[few] < 0.6 * seen[many]
        assert is_clear(0.6 * own[many] - own[few]), "in all five runs"


def test_edges_driven_and_edges_of_the_networks():
    seen = study("exploration").groupby(["network", "route", "policy"]).size()
    assert register("Figure 1").ours == f"{seen.min():,} to {seen.max():,} edges driven in 500 rounds"
    edges = study("exploration").groupby("network")["edge"].max()
    assert edges["Monaco"] < monaco()[0].n_edges == 3003
    assert (edges["Luxembourg"] + 1, register("Section 1, real networks").ours) == (5680, "3,003 and 5,680 edges")


def test_good_paths_of_thompson_sampling():
    """Appendix C.2: a path is good if it costs at most 5 % more than the best one, rectified."""
    agents, keys = study("agents"), ["network", "route", "run", "policy"]
    wide = agents.pivot(index=keys, columns="round", values="cumulative_regret")
    cost = (wide[150] - wide[100]) / 50 / agents.groupby(keys)["best_cost"].first()
    good, edges = cost.dropna() <= 0.05, agents.query("round == 150").groupby("policy")["edges_seen"].mean()
    assert (good.groupby("policy").size()[SIX] == 80).all()
    shares = [f"{p.upper()} {good.xs(p, level='policy').sum()} ({edges[p]:.0f} edges)" for p in SIX]
    row = register("Appendix C.2")
    assert row.ours == f"within 5 % of the best path in rounds 101 to 150, of 80 runs: {', '.join(shares)}"


def test_runs_that_keep_to_a_bad_path():
    """Losing more than 20 Wh a round, rectified, from round 101 to 200; and in the last hundred rounds."""
    runs, keys = study("agents").query("run < 5"), ["network", "route", "run"]
    wide = runs.pivot(index=keys, columns=["policy", "round"], values="cumulative_regret")
    assert len(wide) == wide["gp-ts-joint"].notna().all(axis=1).sum() == 20
    bad, still = (
        {p: int((wide[p, last] - wide[p, last - 100] > 2000).sum()) for p in ("gp-ts-joint", "gp-ts", "bi-ts")}
        for last in (200, 500)
    )
    assert register("Section 4.1, Thompson sampling").ours == (
        f"regret above 20 Wh a round from round 101 to 200: {bad['gp-ts-joint']} of 20 runs with joint samples, "
        f"{bad['gp-ts']} with independent ones"
    )
    assert bad["bi-ts"] == still["bi-ts"] == 3
    assert still["gp-ts-joint"] == still["gp-ts"] == 0


def test_energy_saved_by_the_shift():
    shifted = ends("shifted", "excess_energy", 150, 20)["gp-ts"]
    saved = (early_energy().loc["Monaco", "gp-ts"] - shifted.loc["Monaco"]).groupby("route")
    assert all(is_clear(values) for _, values in saved)
    row, said = register("Section 4.1, rectified costs, energy"), []
    means = joined(saved.mean(), "{:.0f}", " and ")
    assert row.ours.endswith(f"our shift saves GP-TS {means} kWh in 150 rounds, 20 runs")
    assert row.error == joined(saved.sem(), "{:.0f}", "; ")
    net, prior = monaco()
    shift = eo.roads.energy.potential_energy(net.lengths, net.inclines)
    plain, shifted = (rectified_mean(prior.mean - s, np.sqrt(prior.noise_variance)) for s in (0.0, shift))
    form = "{}: least rectified cost {:.0f} Wh, shortest {:.0f}, least shifted cost {:.0f}"
    for route, where in eo.datasets.ROUTES["monaco"].items():
        paths = [net.shortest_path(cost, *where) for cost in (plain, net.lengths, shifted)]
        said.append(form.format(route, *(prior.mean[path].sum() for path in paths)))
    assert row.ours.startswith(f"Monaco by the formula, {'; '.join(said)}; our shift")
