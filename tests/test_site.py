"""What the site shows of the package: every public name has an example, and examples of constants and of the guides run.

Examples of functions and classes run as doctests of their modules. Those of constants stand in the strings below them,
which doctest does not find.
"""

import doctest
import importlib
import operator
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import emsopt as eo
from emsopt.__main__ import main

ROOT = Path(__file__).parents[1]
GUIDES = sorted([*ROOT.glob("README.md"), *(ROOT / "docs").glob("*.md")])
QUICK = {  # the same with less to do
    "evaluate_all(city, 9)": 'evaluate_all(city, 9, evaluator="approximate")',
    "budget=60": "budget=12",
    "horizon=500": "horizon=3",
    "in eo.optimizers.BOX_METHODS}": 'in ("random", "boke")}',
    ", progress=True": "",
    "workers=4": "workers=1",
    "moved}, rng=0)": "moved}, draws=100, rng=0)",
}


@pytest.fixture(scope="module")
def names(script):
    return script("docs/_names.py")


def test_every_public_name_has_an_example(names):
    found = names.public_names(results=False)
    assert len(found) > 160
    assert [name for name, value in found.items() if ">>> " not in names.documentation(name, value)] == []


def test_examples_of_constants_run(names):
    constants = {name: value for name, value in names.public_names().items() if not callable(value)}
    assert {"emsopt.optimizers.METHODS", "emsopt.bandits.POLICIES"} < set(constants)
    runner = doctest.DocTestRunner()
    for name, value in constants.items():
        scope = dict(vars(importlib.import_module(name.rpartition(".")[0])))
        runner.run(doctest.DocTestParser().get_doctest(names.documentation(name, value), scope, name, None, 0))
    assert runner.summarize(verbose=False) == (0, runner.tries)
    assert runner.tries >= len(constants)


def test_tables_in_docstrings_keep_their_columns():
    """No cell of a table in the source runs over the edge of its column, which would make the table unreadable."""
    wide = []
    for file in sorted((ROOT / "emsopt").rglob("*.py")):
        margins = []
        for number, line in enumerate(file.read_text("utf-8").split("\n"), 1):
            if re.fullmatch(r" *=+( +=+)+", line):
                margins = [slice(*space.span()) for space in re.finditer(r"(?<==) +(?==)", line)]
            elif not line.strip() or '"""' in line:
                margins = []
            wide += [f"{file.name}:{number}" for margin in margins if line[margin].strip()]
    assert wide == []


def code_of(name):
    """The Python of a guide."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text("utf-8"), re.DOTALL | re.MULTILINE))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs the Python of a guide as a reader would, from its top, and returns the variables."""
    monkeypatch.chdir(tmp_path)

    def run(name):
        scope = {}
        code = code_of(name)
        for slow, quick in QUICK.items():
            code = code.replace(slow, quick)
        exec(code, scope)  # noqa: S102
        return scope

    return run


@pytest.mark.skipif(not GUIDES, reason="the guides are not installed with the package")
class TestGuides:
    def test_the_code_of_the_start_runs_and_its_picture_has_the_numbers_that_are_printed(self, run):
        scope = run("README.md")
        assert len(scope["everything"].sites) == 9691
        text = " ".join((ROOT / "README.md").read_text("utf-8").split())
        gains = []
        for load in (1, 2, 3):
            city = eo.datasets.load_st_paul().scaled(load)
            best = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").best.sites
            pair = [eo.evaluators.exact_hypercube(city, x) for x in (eo.evaluators.p_median(city, 9).sites, best)]
            gains.append(60 * (pair[0].mean_response - pair[1].mean_response))
        (mean, less), (slow, slower) = ([getattr(e, n) for e in pair] for n in ("mean_response", "percentile_90"))
        assert f"from {mean:.2f} to {less:.2f} min, by {gains[2]:.0f} s" in text
        assert f"from {slow:.1f} to {slower:.1f} min. At twice the calls the mean gains {gains[1]:.0f} s" in text
        busy, lost = 100 * pair[1].utilizations.mean(), 100 * pair[1].loss_probability
        assert f"each busy {busy:.0f} % of the time; {lost:.0f} % of calls find none free" in text
        assert 0 < gains[0] < 1

    def test_the_code_on_other_problems_runs(self, run):
        scope = run("docs/problems.md")
        assert set(scope["point"]) == {"rate", "layers", "solver"}
        assert len(scope["run"].history) == 3

    def test_the_code_on_location_models_runs_and_its_numbers_are_those_printed(self, run):
        scope = run("docs/choosing.md")
        best, *others = (f"{value:.2f}" for value in sorted(scope["responses"].values()))
        text = " ".join((ROOT / "docs" / "choosing.md").read_text("utf-8").split())
        assert f"{best} min; the others have {others[0]} to {others[-1]} min" in text
        assert f"{scope['responses']['p-centre']:.2f}" == best
        assert len(scope["plans"]["fewest sites"].sites) == 8

    def test_the_code_on_own_cities_runs_and_its_numbers_are_those_printed(self, run, tmp_path):
        scope = run("docs/own_city.md")
        assert eo.City.load(tmp_path / "my_city").n_sites == 2
        found = scope["report"].to_frame().loc[["mean_response_min", "percentile_90_min"], ["recorded", "modelled"]]
        text = " ".join((ROOT / "docs" / "own_city.md").read_text("utf-8").split())
        mean, ninety = ([f"{value:.2f}" for value in row] for row in found.to_numpy())
        said = f"{mean[0]} min recorded and {mean[1]} modelled, and the 90th percentile {ninety[0]} and {ninety[1]}"
        assert said in text
        assert scope["today"].count("Station 30") == 3
        assert scope["answer"].difference.low < 0 < scope["answer"].difference.high
        assert (scope["table"]["gain"].dropna() > 0).all()

    def test_the_code_on_clusters_runs_as_a_script(self, tmp_path):
        pytest.importorskip("distributed", reason="needs emsopt[scale]")
        (tmp_path / "scenarios.py").write_text(code_of("docs/scale.md").replace("range(40)", "range(3)"), "utf-8")
        command, here = [sys.executable, "scenarios.py"], os.environ | {"PYTHONPATH": str(ROOT)}
        told = subprocess.run(command, cwd=tmp_path, env=here, check=True, capture_output=True)
        table = re.findall(rb"^(?:\d\.\d)? +([89]) +([\d.]+) +[\d.]+", told.stdout, re.MULTILINE)
        assert len(table) == 6
        assert all(float(nine[1]) < float(eight[1]) for eight, nine in zip(table[::2], table[1::2], strict=True))
        assert (tmp_path / "scenarios.jsonl").read_text().count('{"case"') == 18

    def test_all_their_code_is_run_here(self):
        with_code = {path.name for path in GUIDES if "```python" in path.read_text("utf-8")}
        assert with_code == {"README.md", "choosing.md", "own_city.md", "problems.md", "scale.md"}

    def test_names_and_options_in_them_exist(self, capsys):
        text = "\n".join(path.read_text("utf-8") for path in GUIDES)
        for name in set(re.findall(r"\beo\.([a-z_]\w*(?:\.\w+)*)", text)):
            operator.attrgetter(name)(eo)
        for arguments in (["--help"], ["city", "--help"]):
            with pytest.raises(SystemExit):
                main(arguments)
        known = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
        guide = (ROOT / "docs" / "own_city.md").read_text("utf-8")
        assert set(re.findall(r"(--[a-z][a-z-]+)", guide)) <= known
