"""The learner after the authors' code of the control-problem paper: its rules one by one, and its stored study."""

import numpy as np
import pandas as pd
import pytest
from papers.control_regret import control_verdicts

import emsopt as eo

PROBLEM = ["objective", "costs", "variance", "method"]


@pytest.fixture(scope="module")
def authors(script):
    """Return the module with the learners."""
    return script("benchmarks/bocvs_authors.py")


@pytest.fixture(scope="module")
def both(authors, control_study):
    """Return the study beside the same five seeds of the other methods, after one seed a method was begun again."""
    table = eo.datasets.load_study("bocvs_authors_code")
    for method in authors.METHODS:
        case = {"objective": "hartmann", "costs": "cheap", "variance": 0.02, "method": method, "seed": 0, "cost": 1}
        row = table.query(" and ".join(f"{name} == {value!r}" for name, value in case.items())).iloc[0]
        run = authors.run(eo.problems.hartmann_control("cheap", 0.02), method, 0, 100, until=1)
        last = run[run["spent"] <= 1].iloc[-1]
        assert row["plays"] == (run["spent"] <= 1).sum()
        assert row["simple_regret"] == pytest.approx(last["simple_regret"], abs=2e-3)
        assert row["quality_regret"] == pytest.approx(last["quality_regret"], abs=2e-3)
    assert set(table.groupby(PROBLEM)["seed"].nunique()) == {10}
    return pd.concat([control_study.query("objective != 'airfoil'"), table]).query("seed < 5")


def test_costs_are_drawn_as_in_the_authors_code(authors, claim):
    """Noise of standard deviation 0.01 on every cost, those below 0.1 and that of 1 included, and values without noise."""
    claim("bocvs", "Experiments, cost noise", 0.02, authors.COST_SD)
    problem = eo.problems.hill_control((0.02, 0.3, 1.0))
    chances = np.random.default_rng(0).random(1500)
    for mean, sd in ((0.1, 0.02), (0.2, 0.02), (1.0, 0.0)):
        assert np.std([problem._cost_quantile(mean, u) for u in chances]) == pytest.approx(sd, rel=0.08, abs=1e-12)
    history = pd.concat([authors.run(problem, "authors-code", seed, 8) for seed in range(8)])
    for i, mean in enumerate(problem.costs):
        costs = history.loc[history["set"] == i, "cost"]
        assert len(costs) > 20
        assert costs.mean() == pytest.approx(mean, abs=4 * 0.01 / len(costs) ** 0.5)
        assert costs.std() == pytest.approx(0.01, rel=0.4)
    assert 0.001 <= history["cost"].min() < 1 < history["cost"].max()
    all_controlled = history[history["set"] == 2]
    exact = problem.objective.exact(np.array(all_controlled["x"].tolist()))
    np.testing.assert_allclose(all_controlled["value"], exact, rtol=1e-12)


def test_etc_groups_by_size_and_as_in_the_authors_code(authors, both, claim):
    """Groups of equal size are those of the text; the code's two groups mix sizes, mostly end higher, but are tied."""
    ends = control_verdicts(both, "etc-by-index", ["etc-50"])
    assert ((ends["lead"] < 0).sum(), len(ends)) == (14, 16)
    assert (ends["verdict"] == "tie").all()
    problem, text = eo.problems.levy_control(), eo.optimizers.LEARNERS["etc-50"]
    for kind, groups in ((text, [[0, 1, 2, 3], [4, 5], [6]]), (authors.ETCByIndex, [[4, 0, 1, 2], [5, 3, 6]])):
        learner, rng, sets = kind(problem, budget=100, rng=0), np.random.default_rng(1), []
        assert (learner.plays_per_group, learner.groups) == (50, groups)
        learner.plays_per_group = 3
        for _ in range(10):
            i, x = learner.ask()
            sets.append(i)
            learner.tell(i, x, problem.play(i, x, rng=rng))
        assert all(set(sets[3 * k : 3 * k + 3]) <= set(group) for k, group in enumerate(groups))
        assert learner.phase == "commit"
    claim("bocvs", "Experiments, ETC-50", text.plays_per_group)
    assert "on 14 of 16 problems" in eo.datasets.load_claims("bocvs", "Experiments, ETC-50").iloc[0].why
