"""The navigation study: what its rows say of a run, how large it is, and that a tiny one runs from end to end."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import emsopt as eo
from emsopt import study
from emsopt.roads.energy import potential_energy

FILE = Path(__file__).parents[2] / "benchmarks" / "navigation_study.py"


@pytest.fixture(scope="module")
def navigation(script):
    return script("benchmarks/navigation_study.py")


def options(**change):
    return SimpleNamespace(
        **{"networks": ["monaco"], "runs": None, "horizon": 500, "policies": None, "smoke": False, **change}
    )


def test_the_study_has_the_papers_size(navigation):
    """Section 4.2: 6 agents x 5 runs x 2 routes a network; 4 parametrisations; 6 lengthscales. More is ours."""
    sizes = {part: len(navigation.cases(part, options())) for part in navigation.COMPARED}
    assert sizes == {
        "agents": 280,
        "shifted": 240,
        "sparse": 30,
        "parametrisation": 40,
        "optimism": 40,
        "lengthscale": 240,
        "exploration": 12,
    }


def test_rows_of_a_case(navigation):
    """Every tenth round of a run, and the edges it drove."""
    case = {"network": "monaco", "route": "B", "lengthscale": 1.0, "run": 0, "policy": "bi-ts", "horizon": 30}
    net = eo.datasets.load_roads("monaco")
    run = eo.bandits.run(
        net,
        *eo.datasets.ROUTES["monaco"]["B"],
        "bi-ts",
        horizon=30,
        rng=study.seed_of({"network": "monaco", "route": "B", "run": 0}),
        prior=navigation.prior("monaco", 1.0),
    )
    rows = navigation.regret(**case)
    assert rows["round"].tolist() == [10, 20, 30]
    assert rows["cumulative_regret"].tolist() == run.history["cumulative_regret"][9::10].tolist()
    assert rows["edges_seen"].iloc[-1] == np.count_nonzero(run.counts)
    assert rows["excess_energy"].to_numpy() == pytest.approx(run.history["cumulative_excess_energy"][9::10], abs=1e-6)
    world = eo.bandits.Navigation(
        net, *eo.datasets.ROUTES["monaco"]["B"], navigation.prior("monaco", 1.0), expected=run.expected
    )
    assert rows["best_cost"].tolist() == pytest.approx([world.costs[list(run.best_path)].sum()] * 3)
    shifted = navigation.shifted(**case)  # measured from the same path
    least = run.expected[list(run.best_path)].sum()
    again = navigation.drive(**case, shift=potential_energy(net.lengths, net.inclines))
    energy = again.history["expected_energy"].cumsum() - least * again.history["round"]
    assert shifted["excess_energy"].to_numpy() == pytest.approx(energy[9::10], abs=1e-6)
    driven = pd.DataFrame(navigation.exploration(**case))
    assert driven["visits"].tolist() == run.counts[run.counts > 0].tolist()
    assert driven["edge"].tolist() == np.flatnonzero(run.counts).tolist()
    later = driven.set_index("edge").loc[list(run.history["path"][29]), "first_round"]
    assert later.between(1, 30).all()
    assert (driven["first_round"] == 1).sum() == len(run.history["path"][0])


def test_every_policy_named_can_be_played(navigation):
    for policies in navigation.COMPARED.values():
        for policy in policies:
            assert policy in eo.bandits.POLICIES or policy in navigation.VARIANTS | navigation.SMALL


def test_a_tiny_study_runs_from_end_to_end(navigation, tmp_path, monkeypatch, capsys):
    command = ["navigation_study.py", "--part", "agents", "--smoke", "--networks", "monaco"]
    command += ["--policies", "bi-ts", "bi-ucb", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    navigation.main()
    table = pd.read_csv(tmp_path / "smoke_navigation_agents.csv")
    columns = ["network", "route", "run", "policy", "round", "cumulative_regret", "excess_energy", "edges_seen"]
    assert list(table) == [*columns, "best_cost"]
    assert len(table) == 4
    assert "regret in Wh after the last round" in capsys.readouterr().out
    command[command.index("bi-ts")] = "bi-bucb"  # other policies: the rows of the first stay
    navigation.main()
    both = pd.read_csv(tmp_path / "smoke_navigation_agents.csv")
    assert both["policy"].value_counts().to_dict() == {"bi-ts": 2, "bi-bucb": 2, "bi-ucb": 2}
    pd.testing.assert_frame_equal(both[both["policy"] == "bi-ts"], table[table["policy"] == "bi-ts"])


@pytest.mark.parametrize("policy", ["bi-ucb", "gp-bucb"])
def test_stored_runs_can_be_repeated(navigation, policy):
    """Rules without random draws: rounding on another processor hardly changes a path (none under four kinds tried)."""
    stored = eo.datasets.load_study("navigation_agents")
    case = {"network": "monaco", "route": "A", "run": 1, "policy": policy}
    own = stored[(stored[list(case)] == pd.Series(case)).all(axis=1)].set_index("round")
    again = navigation.regret(**case, lengthscale=1.0, horizon=60).set_index("round")
    assert again["cumulative_regret"].to_numpy() == pytest.approx(own["cumulative_regret"].loc[:60], rel=1e-3)


@pytest.mark.parametrize(
    "part", ["agents", "shifted", "sparse", "parametrisation", "optimism", "lengthscale", "exploration"]
)
def test_the_stored_studies_have_the_size_they_say(navigation, part):
    stored = eo.datasets.load_study(f"navigation_{part}")
    routes = 2 if part in ("shifted", "optimism") else 4
    runs = {"exploration": 1, "lengthscale": 3, "sparse": 3}.get(part, 5)
    assert set(stored["policy"]) == set(navigation.COMPARED[part])
    assert stored.groupby(["network", "route"]).ngroups == routes
    if part == "exploration":
        assert (stored["first_round"] + stored["visits"] <= 501).all()
        return
    if part == "sparse":
        one = stored["network"] == "luxembourg"
        assert set(stored.loc[one, "run"]) == {0}
        assert stored.loc[one, "round"].max() == 150
        assert (stored["excess_energy"].notna() == (stored["round"] <= 150)).all()
        stored = stored[~one]
    keys = ["network", "route", "policy", *(["lengthscale"] if part == "lengthscale" else [])]
    if part in ("agents", "shifted"):
        early = stored[(stored["round"] == 150) & (stored["policy"] != "gp-ts-joint")]
        assert (early.groupby(["network", "route", "policy"])["run"].nunique() == 20).all()
        assert early["excess_energy"].notna().all()
        assert (stored.loc[stored["run"] >= 5, "round"] <= 150).all()
        stored = stored[stored["run"] < 5]
    assert (stored.groupby(keys)["run"].nunique() == runs).all()
    assert stored["round"].max() == 500
    if part == "lengthscale":
        assert (stored.groupby(["network", "route"])["lengthscale"].nunique() == 6).all()
        assert stored["excess_energy"].notna().all()
        assert stored.groupby("network")["round"].max().to_dict() == {"monaco": 500, "luxembourg": 150}
    assert (stored.groupby([*keys, "run"])["cumulative_regret"].diff().dropna() >= -1e-9).all()
