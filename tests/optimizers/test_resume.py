"""`minimize` with a checkpoint: a run that was cut off resumes to the same end, and other files are refused."""

import json

import pytest
from own_functions import BUDGET, CHEAP, noisy, same
from refusals import refused

import emsopt as eo
from emsopt.errors import InputError
from emsopt.optimizers import METHODS, Genetic


def evaluations_on_file(file):
    """Return the numbers of the evaluations in a checkpoint, every line of which must be whole."""
    text = file.read_text()
    assert text.endswith("\n")
    return [json.loads(line)["evaluation"] for line in text.splitlines()[1:]]


@pytest.mark.parametrize("method", ["genetic", "annealing"])
def test_a_checkpoint_changes_nothing_and_can_be_extended(objective, method, tmp_path):
    file = tmp_path / "run.jsonl"
    full = eo.minimize(objective, method, budget=BUDGET, rng=0)
    assert same(eo.minimize(objective, method, budget=BUDGET, rng=0, checkpoint=file), full)
    before, content = objective.evaluations, file.read_bytes()
    assert same(eo.minimize(objective, method, budget=BUDGET, rng=0, checkpoint=file), full)
    assert same(eo.minimize(objective, method, budget=BUDGET, checkpoint=file), full)  # the seed is on file
    assert (objective.evaluations, file.read_bytes()) == (before, content)
    longer = eo.minimize(objective, method, budget=BUDGET + 5, rng=0, checkpoint=file)
    assert objective.evaluations == before + 5
    assert same(longer, eo.minimize(objective, method, budget=BUDGET + 5, rng=0))
    assert evaluations_on_file(file) == list(range(1, BUDGET + 6))


@pytest.mark.parametrize("method", sorted({*METHODS} - {*CHEAP}))
def test_methods_with_a_model_resume_to_the_same_result(objective, method, tmp_path):
    file = tmp_path / "run.jsonl"
    full = eo.minimize(objective, method, budget=23, rng=0, checkpoint=file)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:23]))
    assert same(eo.minimize(objective, method, budget=23, rng=0, checkpoint=file), full)
    assert file.read_bytes().count(b"\n") == len(lines)


def test_a_file_cut_anywhere_resumes(city, tmp_path):
    """Whatever a kill leaves of the last line: cut there at every ninth byte, and in the rest here and there."""
    objective, file = noisy(city), tmp_path / "run.jsonl"
    full = eo.minimize(objective, "genetic", budget=4, rng=0, checkpoint=file)
    content = file.read_bytes()
    values = full.history["value"].tolist()
    last = content[:-1].rfind(b"\n")
    for cut in (*range(0, last, 197), *range(last, len(content), 9), len(content) - 1):
        file.write_bytes(content[:cut])
        objective.evaluations = 0
        run = eo.minimize(objective, "genetic", budget=4, rng=0, checkpoint=file)
        assert run.history["value"].tolist() == values
        whole = max(0, content[:cut].count(b"\n") - 1)  # less the header
        assert objective.evaluations == 4 - whole
        assert evaluations_on_file(file) == [1, 2, 3, 4]
    assert same(run, full)


def test_time_already_spent_counts(timed, tmp_path):
    options = {"rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    eo.minimize(timed, "random", budget=5, **options)
    more = eo.minimize(timed, "random", budget=10, time_limit=7.5, **options)
    assert more.history["seconds"].tolist() == list(range(1, 9))
    again = eo.minimize(timed, "random", budget=10, time_limit=2.5, **options)
    assert (again.nfev, again.message) == (3, "time limit of 2.5 s reached")


def test_a_checkpoint_of_another_run_is_refused(city, objective, tmp_path):
    file = tmp_path / "run.jsonl"

    def run(objective=objective, method="random", rng=0):
        return eo.minimize(objective, method, budget=5, rng=rng, checkpoint=file)

    run()
    content = file.read_bytes()
    others = {
        "seed": {"rng": 1},
        "method": {"method": "genetic"},
        "city": {"objective": eo.Objective(city.scaled(1.01), 4, "approximate")},
        "units": {"objective": eo.Objective(city, 5, "approximate")},
        "metric": {"objective": eo.Objective(city, 4, "approximate", ("late", 5.0))},
        "evaluator": {"objective": eo.Objective(city, 4, "exact")},
        "options": {"objective": eo.Objective(city, 4, "approximate", capacity="queue")},
        "capacities": {"objective": eo.Objective(city, eo.DeploymentSpace(city, 4, closed=[0]), "approximate")},
        "pinned": {"objective": eo.Objective(city, eo.DeploymentSpace(city, 4, pinned=[0]), "approximate")},
    }
    for key, other in others.items():
        refused(f"belongs to another run: its {key} is", run, **other)
    assert file.read_bytes() == content
    times = city.travel_times.tolist(), 1.0, city.service_times.tolist()
    same_city = eo.City(city.arrival_rates.tolist(), *times, name="another")  # built again: its name does not matter
    assert run().nfev == run(eo.Objective(same_city, 4, "approximate")).nfev == 5


def test_an_optimizer_that_asks_otherwise_is_refused(objective, tmp_path):
    file = tmp_path / "run.jsonl"
    full = eo.minimize(objective, Genetic(objective, rng=0), budget=30, checkpoint=file)
    assert same(eo.minimize(objective, Genetic(objective, rng=0), budget=30, checkpoint=file), full)
    for other in (Genetic(objective, rng=1), eo.optimizers.SparBL(objective, sweeps=5, rng=0)):
        with pytest.raises(
            InputError, match=r"its (rng|method|settings) is .* Resume with the same problem, method, options"
        ):
            eo.minimize(objective, other, budget=30, checkpoint=file)
