"""Runs on a road network: history, energy, closures, contexts, checkpoints, invalid options."""

import json
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt import bandits
from emsopt.bandits.policies import rectified_mean
from emsopt.roads import RoadNetwork, grid_roads

START, END = "r0c0-r0c1", "r4c3-r4c4"
SAME = ["round", "hour", "path", "energy", "expected_energy", "regret", "cumulative_regret"]
SAME += ["excess_energy", "cumulative_excess_energy"]


@pytest.fixture(scope="module")
def net():
    return grid_roads(5, 5, jitter=0.3, relief=50, rng=3)


@pytest.fixture(scope="module")
def prior(net):
    return bandits.navigation_prior(net)


@pytest.mark.parametrize("policy", bandits.POLICIES)
def test_a_run_is_its_history(net, prior, policy):
    run = eo.bandits.run(net, START, END, policy, horizon=25, rng=0, prior=prior)
    history, turns = run.history, set(map(tuple, net.connections.tolist()))
    assert (list(history.columns), history["round"].tolist()) == ([*SAME, "seconds"], list(range(1, 26)))
    assert history["cumulative_regret"].to_numpy() == pytest.approx(history["regret"].cumsum(), rel=1e-12)
    assert run.regret == history["cumulative_regret"].iloc[-1]
    assert run.counts.sum() == history["path"].str.len().sum()
    costs = rectified_mean(run.expected, np.sqrt(prior.noise_variance))
    best = net.shortest_path(costs, START, END)
    for row in history.itertuples():
        path = list(row.path)
        assert (net.ids[path[0]], net.ids[path[-1]]) == (START, END)
        assert set(pairwise(path)) <= turns
        assert row.expected_energy == pytest.approx(run.expected[path].sum(), rel=1e-12)
        assert row.regret == pytest.approx(costs[path].sum() - costs[best].sum(), abs=1e-9)
        excess = row.expected_energy - run.expected[best].sum()  # not rectified
        assert row.excess_energy == pytest.approx(excess, abs=1e-9)
    assert run.excess_energy == pytest.approx(history["excess_energy"].sum(), abs=1e-6)
    assert history["seconds"].is_monotonic_increasing
    assert (run.policy, run.message) == (policy, "horizon of 25 rounds reached")
    assert np.array_equal(run.regression.predict()[0], run.mean)


def test_a_path_with_more_rectified_regret_may_need_less_energy():
    """By hand: 8 Wh on one way; 12 Wh, then 50 Wh gained on the other, which rectification ignores."""
    net = RoadNetwork([100.0] * 5, [10.0] * 5, [(0, 1), (1, 3), (0, 2), (2, 4), (4, 3)])
    truth = np.array([5.0, 8.0, 12.0, 5.0, -50.0])
    known = bandits.Prior(truth, 1e-18 * np.eye(5), noise_variance=0.01)
    prior = bandits.Prior([5.0, 98.0, 12.0, 5.0, -50.0], 1e-18 * np.eye(5), noise_variance=0.01)
    best, other = (bandits.run(net, 0, 3, "bi-ts", horizon=2, rng=0, prior=p, expected=truth) for p in (known, prior))
    assert [best.history["path"][0], other.history["path"][0]] == [(0, 1, 3), (0, 2, 4, 3)]
    assert (best.regret, best.excess_energy, other.regret) == (0.0, 0.0, pytest.approx(2 * 4.0, abs=1e-6))
    assert other.excess_energy == pytest.approx(-2 * 46.0, abs=1e-6)


def test_potential_energy_changes_no_comparison_of_paths_and_leaves_little_to_rectify():
    """Our shift: it adds up to the same on every path, and no prior mean minus it is negative."""
    net, ends = grid_roads(6, 6, jitter=0.3, relief=150, rng=3), ("r0c0-r0c1", "r5c4-r5c5")
    shift, prior = eo.roads.energy.potential_energy(net.lengths, net.inclines), bandits.navigation_prior(net)
    assert np.mean(prior.mean < 0) > 0.3
    assert (prior.mean - shift > 0).all()
    rng = np.random.default_rng(0)
    paths = [net.shortest_path(rng.exponential(size=net.n_edges), *ends) for _ in range(20)]
    assert np.ptp([shift[path].sum() for path in paths]) < 1e-6 * np.abs(shift).sum()
    run = bandits.run(net, *ends, "gp-ts", horizon=10, rng=0, prior=prior, shift=shift)
    costs = rectified_mean(run.expected - shift, np.sqrt(prior.noise_variance))
    assert run.best_path == tuple(net.shortest_path(costs, *ends))
    wanted = [costs[list(path)].sum() - costs[list(run.best_path)].sum() for path in run.history["path"]]
    assert run.history["regret"].to_numpy() == pytest.approx(wanted, abs=1e-9)
    arms, rule = bandits.IndependentArms(prior), bandits.UCB()
    shifted = bandits.Agent(arms, rule, sense="min", rectify=True, shift=shift).indices(3, np.arange(9))
    plain = bandits.Agent(arms, rule, sense="min").indices(3, np.arange(9))
    assert shifted == pytest.approx(rectified_mean(plain - shift[:9], np.sqrt(prior.noise_variance)), rel=1e-12)


def test_options_of_a_regression_and_ones_own_beta(net, prior, tmp_path):
    class Constant:
        def beta(self, t, n_arms):
            return np.full(np.shape(t), 2.0)

    run = bandits.run(net, START, END, ("bi", Constant()), horizon=4, rng=0, prior=prior)
    world = bandits.Navigation(net, START, END, prior, rng=0)
    agent = bandits.Agent(bandits.IndependentArms(prior), Constant(), sense="min", rectify=True)
    rounds = bandits.play(agent, world, world.oracle, horizon=4)
    assert [tuple(r.arms) for r in rounds] == run.history["path"].tolist()
    few, other = (bandits.SparseGP(prior, context_rate=0.05) for _ in range(2))
    few.inducing, other.inducing = 9, 10
    options = {"horizon": 12, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    run = bandits.run(net, START, END, "svgp-ts", regression=few, **options)
    assert len(run.regression._points) == 9
    refused("its regression is", bandits.run, net, START, END, "svgp-ts", regression=other, **options)


def test_policies_face_the_same_city_and_noise(net, prior):
    first, *others = (bandits.run(net, START, END, p, horizon=3, rng=4, prior=prior) for p in bandits.POLICIES)
    assert all(np.array_equal(run.expected, first.expected) for run in others)
    other = bandits.run(net, START, END, "gp-ts", horizon=3, rng=5, prior=prior)
    assert not np.array_equal(other.expected, first.expected)
    city, some = bandits.Navigation(net, START, END, prior, rng=4), np.array([3, 1, 4])
    assert np.array_equal(city.observe(2, some), city.observe(2, np.arange(net.n_edges))[some])
    noise = np.array([city.observe(t, some) - city.expected[some] for t in range(1, 2000)])
    assert noise.std(axis=0) == pytest.approx(np.sqrt(prior.noise_variance), rel=0.08)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.1


def test_learning_pays_and_thompson_sampling_explores_less(net, prior):
    """The paper's order on a small city, three seeds: TS < BUCB < UCB; and the last rounds cost less than the first."""
    regret = {}
    for policy in ("gp-ts", "gp-bucb", "gp-ucb"):
        runs = [bandits.run(net, START, END, policy, horizon=80, rng=k, prior=prior) for k in range(3)]
        regret[policy] = np.mean([run.regret for run in runs])
        curve = np.mean([run.history["regret"] for run in runs], axis=0)
        assert curve[-20:].mean() < curve[:20].mean()
    assert regret["gp-ts"] < regret["gp-bucb"] < regret["gp-ucb"]


def test_closed_roads_are_not_driven_and_do_not_count_against_the_agent(net, prior):
    """Roads closed always or in odd rounds, and a turn in odd rounds: the comparison is with the best open path."""
    options = {"horizon": 30, "rng": 1, "prior": prior}
    costs = rectified_mean(bandits.run(net, START, END, "gp-ts", **options).expected, np.sqrt(prior.noise_variance))
    best = net.shortest_path(costs, START, END)
    roads = best[len(best) // 2 - 1 : len(best) // 2 + 2].tolist()
    turn = (int(best[3]), int(best[4]))
    graph = nx.DiGraph([(a, b, {"weight": costs[b]}) for a, b in net.connections.tolist() if (a, b) != turn])
    other_turn = costs[best[0]] + nx.dijkstra_path_length(graph, best[0], best[-1])
    other_roads = costs[net.shortest_path(costs, START, END, closed=roads)].sum()
    assert min(other_roads, other_turn) > costs[best].sum() + 0.1
    assert costs[net.shortest_path(costs, START, END, closed=[turn])].sum() == pytest.approx(other_turn, rel=1e-12)
    asked = []
    for closed, shut, detour in (
        (roads, roads, other_roads),
        ([net.ids[k] for k in roads], roads, other_roads),
        (lambda t: asked.append(t) or (roads if t % 2 else []), roads, other_roads),
        (lambda t: [(turn[0], net.ids[turn[1]])] if t % 2 else [], [turn], other_turn),
    ):
        run = bandits.run(net, START, END, "gp-ts", **options, closed=closed)
        for number, path, regret in run.history[["round", "path", "regret"]].itertuples(index=False):
            is_closed = not callable(closed) or number % 2
            assert not (is_closed and {*path, *pairwise(path)} & set(shut))
            wanted = costs[list(path)].sum() - (detour if is_closed else costs[best].sum())
            assert regret == pytest.approx(wanted, abs=1e-9)
    assert run.counts[roads].sum() > 0, "only the turn is closed"
    assert asked == list(range(1, 31)), "once a round, as roads may close at random"
    both = net.closure_mask([turn, 7])
    assert np.flatnonzero(both[: net.n_edges]).tolist() == [7]
    assert net.connections[both[net.n_edges :]].tolist() == [list(turn)]


def test_contexts_can_be_new_in_every_round(net):
    """Section 2.1: with one row of speeds per round, no arm comes up twice, and learning carries over."""
    speeds = np.random.default_rng(0).uniform(0.3, 1.0, (20, net.n_edges))
    prior = bandits.navigation_prior(net, congestion=speeds)
    run = bandits.run(net, START, END, "gp-ts", horizon=20, rng=0, prior=prior)
    assert (run.counts.max(), run.history["hour"].tolist()) == (1, list(range(20)))
    later = slice(19 * net.n_edges, None)  # arms of the last round, of which few were driven
    explained = 1 - run.deviation[later] ** 2 / np.diag(prior.covariance)[later]
    assert np.median(explained) > 0.2
    run = bandits.run(net, START, END, "gp-ts", horizon=6, rng=0, congestion=[1.0, 0.4])
    assert run.history["hour"].tolist() == [0, 1, 0, 1, 0, 1]
    assert (run.counts.reshape(2, net.n_edges).sum(axis=1) > 0).all()
    assert (run.history["regret"] >= -1e-9).all()
    hours = {"congestion": np.full(24, 0.9), "lazy": False}  # too many are refused before memory is taken
    message, monaco = "72072 arms.*42 GB.*use a smaller network", eo.datasets.load_roads("monaco")
    refused(message, bandits.navigation_prior, monaco, **hours)


@pytest.mark.parametrize("policy", ["gp-ts-joint", "svgp-ts", "bi-ts"])
def test_a_killed_run_resumes_to_the_same_end(net, prior, tmp_path, policy):
    def assert_same(one, other):
        assert one.history[SAME].equals(other.history[SAME])
        assert one.message == other.message

    options = {"policy": policy, "horizon": 20, "prior": prior}
    whole, file = bandits.run(net, START, END, **options, rng=7), tmp_path / "run.jsonl"
    assert_same(bandits.run(net, START, END, **options, rng=7, checkpoint=file), whole)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:9]) + lines[9][:9])  # killed while it wrote the ninth round
    resumed = bandits.run(net, START, END, **options, checkpoint=file)  # the seed is on file
    assert_same(resumed, whole)
    assert file.read_bytes().count(b"\n") == len(lines) == 21
    assert np.array_equal(resumed.mean, whole.mean)
    longer = bandits.run(net, START, END, **options | {"horizon": 24}, rng=7, checkpoint=file)
    assert_same(longer, bandits.run(net, START, END, **options | {"horizon": 24}, rng=7))


def test_a_checkpoint_of_another_run_is_refused(net, prior, tmp_path):
    file = tmp_path / "run.jsonl"

    def run(**change):
        given = {"end": END, "policy": "gp-ts", "rng": 7, "prior": prior, **change}
        return bandits.run(net, START, horizon=3, checkpoint=file, **given)

    run()
    for change, message in (
        ({"policy": "bi-ts"}, "its policy is 'gp-ts', but that of this run is 'bi-ts'"),
        ({"rng": 8}, "its seed is 7, but that of this run is 8"),
        ({"end": "r3c3-r4c3"}, "its end is"),
        ({"closed": [9]}, "its closed is"),
        ({"prior": bandits.navigation_prior(net, noise_sd=0.2)}, "its prior is"),
    ):
        refused(message, run, **change)
    header, first, *rest = file.read_text().splitlines()
    row = json.loads(first)
    for change, message in (
        ({"arms": row["arms"][::-1]}, r"path of round 1 in the checkpoint .* is closed now"),
        ({"round": 2}, r"line 2 of the checkpoint .* is damaged"),
    ):
        file.write_text("\n".join([header, json.dumps({**row, **change}), *rest]) + "\n")
        refused(message, run)


def test_why_a_run_ends(net, prior):
    def interrupt(step):
        if step.number == 4:
            raise KeyboardInterrupt

    no_path = f"round 6 has no open path: the end {END!r} is closed. Choose another end."
    for given, rounds, message in (
        ({"callback": interrupt}, 4, "interrupted"),
        ({"callback": lambda step: step.number == 2}, 2, "stopped by the callback"),
        ({"closed": lambda t: [END] if t == 6 else []}, 5, no_path),
        ({"time_limit": 1e-9}, 1, "time limit of 1e-09 s reached"),
    ):
        run = bandits.run(net, START, END, horizon=10, rng=0, prior=prior, **given)
        assert (len(run.history), run.message) == (rounds, message)


def test_wrong_options_are_refused(net, prior):
    for change, message in (
        ({"policy": "gp"}, "`policy` must be one of 'gp-ts'"),
        ({"policy": ("gp", "ts")}, "a regression and a rule"),
        ({"policy": ("svgp", bandits.Thompson(True))}, "Joint samples need a regression with a method `sample`"),
        ({"start": "home"}, "no edge 'home'"),
        ({"closed": [START]}, "the start 'r0c0-r0c1' is closed"),
        ({"prior": np.eye(3)}, "`prior` must be an emsopt.bandits.Prior"),
        ({"noise_sd": 0.2}, "only one of `prior`, kernel options, and `regression`"),
        ({"prior": bandits.Prior([0.0] * 3, np.eye(3), 1.0)}, "multiple of 80; got 3 arms"),
        ({"regression": bandits.Thompson()}, "`regression` must be an? ExactGP, because the policy is 'gp-ts'"),
    ):
        options = {"start": START, "end": END, "horizon": 2, "rng": 0, "prior": prior, **change}
        refused(message, bandits.run, net, **options)
