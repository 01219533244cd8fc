"""The register's rows on the control-problem paper, computed again from the stored study, word by word."""

from papers.control_regret import control_verdicts

import emsopt as eo

CLAIMS = eo.datasets.load_claims("bocvs").set_index("place")
KEYS = ["objective", "costs", "variance", "method"]
PANELS = {"hartmann": "Figure 1(a)", "ackley": "Figure 1(b)", "plant": "Figure 1(c)", "airfoil": "Figure 1(d)"}


def three(x):
    """Return a number with three digits, a small one with one."""
    return f"{x:.3g}" if x >= 1e-3 else f"{x:.1g}"


def counted(verdicts):
    """Return wins, ties and losses."""
    return ", ".join(str((verdicts["verdict"] == name).sum()) for name in ("win", "tie", "loss"))


def differ(wanted):
    """Return the rows whose texts in the columns `ours` and `error` differ from the wanted ones, by place."""
    rows = {place: (CLAIMS.loc[place, "ours"], CLAIMS.loc[place, "error"]) for place in wanted}
    return {place: (rows[place], want) for place, want in wanted.items() if rows[place] != want}


def test_figure_1(control_study):
    """Ends, their differences and verdicts, with cheap and moderate costs; Levy's problems have no panel."""
    numbers, verdicts = {}, {}
    last = control_study[control_study["cost"] == 100].set_index(KEYS[:3])
    for (objective, costs, variance), row in control_verdicts(control_study).drop("levy").iterrows():
        place = f"{PANELS[objective]}, {costs} costs, variance {variance}"
        lead = f"{three(row.error)}; {three(row.lead_error)} of the difference"
        numbers[place] = f"{three(row.ours)} against {three(row.theirs)} of {row.rival}", lead
        # the paper leaves open how the kernel is fitted, among others: a loss refutes nothing
        verdicts[place] = "reproduced" if row.verdict == "win" else "not reproduced"
        wide = last.loc[(objective, costs, variance)].pivot(index="seed", columns="method", values="simple_regret")
        lower, seeds, why = (wide["unknown-cost"] < wide[row.rival]).sum(), len(wide), CLAIMS.loc[place, "why"]
        assert f"lower with {'all' if lower == seeds else f'{lower} of'} {seeds} seeds" in why
        assert why.startswith("Lower" if row.lead > 0 else "Higher")
        assert ("tied with it by Student's t" in why) == (row.verdict == "tie")
        assert ("within 0.0001" in why) == (wide[["unknown-cost", row.rival]].max(axis=None) < 1e-4)
        worst, second = wide[row.rival].nlargest(2)
        assert (f"One run of the rival ({worst:.3f}, the others below 0.01)" in why) == (second < 0.01 < worst / 10)
    assert (differ(numbers), CLAIMS.loc[list(verdicts), "verdict"].to_dict()) == ({}, verdicts)


def test_numbers_computed_from_the_stored_studies(control_study):
    every = control_verdicts(control_study)
    naive = control_verdicts(control_study, rivals=["ucb-psq", "ts-psq"])
    both = control_verdicts(control_study, "ucb-cvs", ["etc-50"])
    last = control_study[control_study["cost"] == 100]
    ours = last[last["method"] == "unknown-cost"].groupby("objective")
    runs, sums = ours["restarts"].max(), ours[["restarts", "plays"]].sum()
    late = 100 * sums["restarts"] / sums["plays"]
    mean = last.groupby(KEYS, sort=False).mean(numeric_only=True).loc[("airfoil", "cheap", 0.04)]
    spent = mean["cost_regret"]
    wanted = {
        "Experiments, text on Figure 1": f"wins, ties, losses on 20 problems: {counted(naive)} against the two naive "
        f"methods; {counted(every)} against the best of four rivals",
        "Experiments, UCB-CVS": f"UCB-CVS against ETC-50: wins, ties, losses {counted(both)}",
        "Algorithm 1, lines 17 to 20": f"{runs[['hartmann', 'levy', 'airfoil']].max():.0f} on Hartmann, Levy and the "
        f"airfoil, at most {runs['plant']:.0f} in a run on the plant and {runs['ackley']:.0f} on Ackley "
        f"({late['plant']:.1f} % and {late['ackley']:.1f} % of the plays)",
        "Figure 1, simple regret": f"airfoil (cheap costs, variance 0.04): at most {mean['simple_regret'].max():.1g} with "
        f"every method, cost regret {spent.min():.0f} to {spent.max():.0f}",
    }
    won = every.query("verdict == 'win'").groupby("objective").size()
    assert won.to_dict() == {"ackley": 2, "plant": 2}
    assert differ({place: (ours, "") for place, ours in wanted.items()}) == {}
