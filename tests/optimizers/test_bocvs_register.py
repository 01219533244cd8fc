"""The register's numbers on the control-problem paper, computed again from the stored studies and the settings."""

import inspect

import numpy as np
import pytest
from papers.control_regret import control_regrets, control_verdicts

import emsopt as eo
from emsopt.optimizers import LEARNERS
from emsopt.optimizers.control.learners import ControlLearner, UnknownCost
from emsopt.optimizers.control.model import ControlModel
from emsopt.problems.control import ready_made as ready

CLAIMS = eo.datasets.load_claims("bocvs").set_index("place")
KEYS = ["objective", "costs", "variance", "method"]
PANELS = {"hartmann": "Figure 1(a)", "ackley": "Figure 1(b)", "plant": "Figure 1(c)", "airfoil": "Figure 1(d)"}


def three(x):
    """Return a number with three digits, a small one with one."""
    return f"{x:.3g}" if x >= 1e-3 else f"{x:.1g}"


def span(values, digits=0):
    """Return the range of some numbers."""
    return f"{values.min():,.{digits}f} to {values.max():,.{digits}f}"


def counted(verdicts):
    """Return wins, ties and losses."""
    found = verdicts["verdict"].value_counts()
    return ", ".join(str(found.get(name, 0)) for name in ("win", "tie", "loss"))


@pytest.fixture(scope="module")
def study(control_study):
    return control_study


def differ(wanted):
    """Return the rows whose numbers differ from the wanted ones, by place."""
    rows = {place: (CLAIMS.loc[place, "ours"], CLAIMS.loc[place, "error"]) for place in wanted}
    return {place: (rows[place], want) for place, want in wanted.items() if rows[place] != want}


def figure_1(study):
    """Return ends, their differences, and verdicts by place; Levy's problems have no panel."""
    numbers, verdicts = {}, {}
    for (objective, costs, variance), row in control_verdicts(study).iterrows():
        if objective in PANELS:
            place = f"{PANELS[objective]}, {costs} costs, variance {variance}"
            lead = f"{three(row.error)}; {three(row.lead_error)} of the difference"
            numbers[place] = f"{three(row.ours)} against {three(row.theirs)} of {row.rival}", lead
            # the paper leaves open how the kernel is fitted, among others: a loss refutes nothing
            verdicts[place] = "reproduced" if row.verdict == "win" else "not reproduced"
    return numbers, verdicts


def test_figure_1(study):
    numbers, verdicts = figure_1(study)
    assert differ(numbers) == {}
    assert CLAIMS.loc[list(verdicts), "verdict"].to_dict() == verdicts
    last = study[study["cost"] == 100].set_index(KEYS[:3])
    for (objective, costs, variance), row in control_verdicts(study).drop("levy").iterrows():
        wide = last.loc[(objective, costs, variance)].pivot(index="seed", columns="method", values="simple_regret")
        lower, seeds = (wide["unknown-cost"] < wide[row.rival]).sum(), len(wide)
        why = CLAIMS.loc[f"{PANELS[objective]}, {costs} costs, variance {variance}", "why"]
        assert f"lower with {'all' if lower == seeds else f'{lower} of'} {seeds} seeds" in why
        assert why.startswith("Lower" if row.lead > 0 else "Higher")
        assert ("tied with it by Student's t" in why) == (row.verdict == "tie")
        assert ("within 0.0001" in why) == (wide[["unknown-cost", row.rival]].max(axis=None) < 1e-4)
        worst, second = wide[row.rival].nlargest(2)
        assert (f"One run of the rival ({worst:.3f}, the others below 0.01)" in why) == (second < 0.01 < worst / 10)


def wins(study):
    """Return the rows on wins, ties and losses."""
    naive = control_verdicts(study, rivals=["ucb-psq", "ts-psq"])
    every = control_verdicts(study)
    both = control_verdicts(study, "ucb-cvs", ["etc-50"])
    return {
        "Experiments, text on Figure 1": f"wins, ties, losses on 20 problems: {counted(naive)} against the two naive "
        f"methods; {counted(every)} against the best of four rivals",
        "Experiments, UCB-CVS": f"UCB-CVS against ETC-50: wins, ties, losses {counted(both)}",
    }


def ends(study):
    """Return the rows on the state of the runs at 100 units of cost, and on what happened after 60."""
    last, at = study[study["cost"] == 100], study.set_index([*KEYS, "seed"])
    mean = last.groupby(KEYS, sort=False).mean(numeric_only=True)
    after = (
        (at[at["cost"] == 100] - at[at["cost"] == 60])[["plays", "on_target"]].groupby(level=KEYS, sort=False).mean()
    )
    plays, share = after["plays"].unstack("method"), (after["on_target"] / after["plays"]).unstack("method")
    ours, rivals = plays["unknown-cost"], plays[["ucb-psq", "ts-psq", "etc-50"]]
    airfoil = plays.loc["airfoil"].xs("moderate", level="costs")
    kinds = control_regrets(study).xs("mean", axis=1, level=1)
    most = {
        n: (kinds[n].unstack("method").idxmax(axis=1) == "unknown-cost").sum()
        for n in ("quality_regret", "quality_per_play")
    }
    target = mean["on_target"].unstack("method").loc["hartmann"]
    percent = {name: 100 * share.loc[name, "unknown-cost"].mean() for name in ("hartmann", "ackley")}
    lead = study[(study["cost"] == 55) & (study["variance"] == 0.02) & (study["objective"] == "plant")]
    lead = lead.groupby("method")["simple_regret"].mean()
    restarts = last[last["method"] == "unknown-cost"].groupby("objective")[["restarts", "plays"]].sum()
    runs = last[last["method"] == "unknown-cost"].groupby("objective")["restarts"].max()
    simple, spent = (mean.loc[("airfoil", "cheap", 0.04), name] for name in ("simple_regret", "cost_regret"))
    seeds = study.groupby(KEYS)["seed"].nunique()
    late = 100 * restarts["restarts"] / restarts["plays"]
    return {
        "Algorithm 1, lines 17 to 20": f"{runs[['hartmann', 'levy', 'airfoil']].max():.0f} on Hartmann, Levy and the "
        f"airfoil, at most {runs['plant']:.0f} in a run on the plant and {runs['ackley']:.0f} on Ackley "
        f"({late['plant']:.1f} % and {late['ackley']:.1f} % of the plays)",
        "Algorithm 1, lines 22 to 24": f"covered in all {(study['covered'] == 1).sum():,} rows",
        "Figure 1, number of runs": f"{span(seeds)} seeds",
        "Experiments, budget": f"{study['cost'].max()}",
        "Figure 1, simple regret": f"airfoil (cheap costs, variance 0.04): at most {simple.max():.1g} with every method, "
        f"cost regret {span(spent)}",
        "Figure 2, Hartmann": f"{span(ours['hartmann'])} against {rivals.loc['hartmann'].max().max():.0f}",
        "Figure 2, Ackley": f"{span(ours['ackley'])} against {rivals.loc['ackley'].max().max():.0f}",
        "Figure 2, plant": f"{ours['plant'].max():.0f} against {rivals.loc['plant'].max().max():.0f}",
        "Figure 2, airfoil": f"{airfoil['unknown-cost'].mean():.0f} against {span(airfoil[list(rivals)].stack())} "
        "(moderate costs)",
        "Experiments, text on Figure 2": f"{mean['plays'].unstack('method').loc['plant', ['ucb-psq', 'ts-psq']].max().max():.0f} "
        "plays for 100 units",
        "Experiments, text on Figure 2, second sentence": "{hartmann:.0f} % of the late plays on Hartmann, {ackley:.0f} % "
        "on Ackley".format(**percent),
        "Experiments, reason for the efficiency": "{hartmann:.0f} % and {ackley:.0f} % of the late plays are of the cheap "
        "target on Hartmann and Ackley; plant: ".format(**percent)
        + f"{lead['unknown-cost']:.2f} against {lead.drop('unknown-cost').min():.2f} before exploitation",
        "Experiments, quality regret (not shown)": f"largest of five on {most['quality_regret']} of 20 problems in total, "
        f"on {most['quality_per_play']} per play",
        "Contributions, unknown costs": f"{span(target['unknown-cost'])} plays of the target against "
        f"{span(target['ucb-cvs'])}",
    }


def horizons():
    """Return the rows on the growth of regrets with the budget."""
    table = eo.datasets.load_study("bocvs_horizon")
    names = ["cost_regret", "quality_regret", "weighted_regret"]
    mean = table.groupby(["exploration", "budget"])[names].mean()
    cost, quality, own = (mean[name].unstack("exploration") for name in names)
    slope = {
        name: np.log(cost.loc[160, name] / cost.loc[low, name]) / np.log(160 / low)
        for name, low in (("60 %", 40), ("shrinking", 40))
    }
    shrinking, fixed, cvs = "shrinking", "60 %", "none, UCB-CVS"
    return {
        "Introduction, UCB-CVS": f"own regret {own[cvs][40]:.1f} at a budget of 40 and {own[cvs][160]:.1f} at 160; cost "
        f"regret {cost[cvs][40]:.1f} and {cost[cvs][160]:.1f}",
        "After Theorem 1, sublinear cost regret": f"{cost[shrinking][40]:.1f} at a budget of 40, "
        f"{cost[shrinking][160]:.1f} at 160: slope {slope[shrinking]:.2f} on logarithmic axes",
        "After Theorem 1, sublinear quality regret": f"{quality[shrinking][40]:.1f} at a budget of 40, "
        f"{quality[shrinking][160]:.1f} at 160",
        "Related Work, both issues of UCB-CVS": f"cost regret of {cost[fixed][40] / 40:.4f} per unit at a budget of 40, "
        f"{cost[fixed][160] / 160:.4f} at 160: slope {slope[fixed]:.2f} on logarithmic axes",
        "Practical Considerations, share": f"cost regret {cost[shrinking][160]:.1f} (shrinking share) against "
        f"{cost[fixed][160]:.1f} (60 %), quality regret {quality[shrinking][160]:.1f} against {quality[fixed][160]:.1f} "
        "at a budget of 160",
    }


def promised():
    """Return the rows on the bounds of the theorems."""
    table, each = eo.datasets.load_study("bocvs_bounds"), eo.datasets.load_study("bocvs_exploration")
    broken = (table["quality_regret"] > table["bound_3"]) | (table["cost_regret"] > table["bound_4"])
    strict, loose = (table.query(f"plays == 1_000_000 and alpha == {a}").mean() for a in (0.0, 0.1))
    exact = each.groupby("each")["exact"].min()
    cost = f"{loose['cost_regret']:,.0f} against a bound of {loose['bound_4']:,.0f} at a million plays (α = 0.1)"
    return {
        "Theorem 1, (3)": f"{strict['quality_regret']:,.0f} against a bound of {strict['bound_3']:,.0f} at a million plays "
        "(α = 0)",
        "Theorem 1, (4)": cost,
        "Theorem 1, probability": f"{broken.sum()} of {len(table)} runs break a bound",
        "Proof of Theorem 1, probabilities": f"{broken.sum()} of {len(table)} runs break a bound",
        "After Theorem 1, convergence": f"{100 * table[table['plays'] >= 30_000]['on_target'].min():.1f} % of the later "
        "plays of every run, from 30,000 plays on",
        "Lemma 2": f"exact in all plays from {exact[exact == 1].index.min()} plays per set on, in a share of {exact[20]:.3f} with 20",
        "Theorem 3, (5)": f"{strict['quality_regret']:,.0f} against a bound of {strict['bound_5']:,.0f} at a million plays "
        "(α = 0)",
        "Theorem 3, cost regret": cost,
    }


def settings():
    """Return the rows on the paper's settings and problems."""
    default = {
        p.name: p.default
        for kind in (ControlLearner, UnknownCost, LEARNERS["etc-50"])
        for p in inspect.signature(kind).parameters.values()
    }
    air = {v: ready.airfoil_control(variance=v).set_values for v in ready.VARIANCES}
    twelve = {
        len(make(variance=v).acceptable(0.0))
        for make in (ready.hartmann_control, ready.ackley_control)
        for v in ready.VARIANCES
    }
    (best,) = twelve
    cheap, moderate = ready.COSTS.values()
    return {
        "Experiments, objectives (a) and (b)": f"{best} of {len(ready.SETS_OF_TWELVE)}",
        "Experiments, unrelated variables": f"{ready.IRRELEVANT_INPUTS}",
        "Experiments, order of costs": f"both {cheap[3]:g} (cheap), both {moderate[3]:g} (moderate)",
        "Experiments, most expensive set": f"set {air[0.02].argmax() + 1} on the airfoil: "
        + " and ".join(f"{v.max():.3f} against {v[-1]:.3f}" for v in air.values()),
        "Experiments, distributions": ", ".join(map(str, ready.VARIANCES)),
        "Experiments, cost sets and Appendix C, control sets": f"{len(cheap)} sets",
        "Experiments, ETC-50": f"{LEARNERS['etc-50'].plays_per_group}",
        "Experiments, settings of the method": f"{100 * default['exploration']:.0f} of 100; {default['alpha']}",
        "Appendix C, β": f"{ControlModel.beta:g}",
    }


def test_numbers_computed_from_the_stored_studies(study):
    won = control_verdicts(study).query("verdict == 'win'").groupby("objective").size()
    assert won.to_dict() == {"ackley": 2, "plant": 2}
    naive = study[study["method"].isin(["ucb-psq", "ts-psq"]) & (study["objective"] != "airfoil")]
    assert (naive.groupby(["objective", "method", "seed", "cost"])["simple_regret"].agg(np.ptp) == 0).all()
    assert differ({place: (ours, "") for place, ours in (wins(study) | ends(study)).items()}) == {}


def test_numbers_computed_from_the_studies_of_the_theorems():
    assert differ({place: (ours, "") for place, ours in (horizons() | promised()).items()}) == {}


def test_numbers_of_the_papers_settings():
    assert differ({place: (ours, "") for place, ours in settings().items()}) == {}
