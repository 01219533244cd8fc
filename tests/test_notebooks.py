"""The notebooks as files: thin cells, outputs stored only on the start page, links that lead somewhere, solutions that solve.

That they run is checked with nbval, by the command of CONTRIBUTING.md, which ``.ci/run`` runs.
"""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic_log import synthetic_log

from emsopt._files.locate import package_file
from emsopt.datasets import check_answer

FOLDER = Path(__file__).parents[1] / "notebooks"
DASHBOARD = FOLDER / "dashboard.ipynb"  # the one that is no lesson: a single panel, to be served by Voila
NOTEBOOKS = sorted(path for path in FOLDER.glob("*.ipynb") if path != DASHBOARD)
SOLUTION = re.compile(r"<details><summary>Solution</summary>\n\n```python\n(.*?)```.*?</details>", re.DOTALL)
ANSWER = "answer = None"
WIDTHS = pd.read_csv(package_file("exercises.csv"), dtype={"exercise": str}).set_index("exercise")["width"]

pytestmark = pytest.mark.skipif(not NOTEBOOKS, reason="the notebooks are not installed with the package")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


def cells(path, kind):
    found = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def test_the_kernel_is_the_plain_one(path):
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"]["name"] == "python"
    assert notebook["nbformat"] == 4
    assert "widgets" not in notebook["metadata"]
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


def test_only_the_start_page_is_stored_with_what_it_shows(path):
    """Nothing runs where many read it: nbval compares its texts, and large maps are left out."""
    code = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    if path == NOTEBOOKS[0]:
        assert path.stat().st_size <= 300_000
        assert any("image/png" in output.get("data", ()) for cell in code for output in cell["outputs"])
        assert sum("nbval-check-output" in cell["metadata"].get("tags", ()) for cell in code) >= 8
    else:
        for cell in code:
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_cells_are_thin_and_claim_nothing_without_checking(path):
    for code in cells(path, "code"):
        assert len(code.splitlines()) <= 12 or code.startswith("# Checks of what was said above."), code
        assert not re.search(r"^\s*(def|class|!|%pip|%cd)\b", code, re.MULTILINE), code
    assert "\n".join(cells(path, "code")).count("assert ") >= 5


def test_nothing_depends_on_the_machine_or_the_network(path):
    text = path.read_text("utf-8")
    assert not re.search(r"(/home/|/root/|/tmp/|/work/|/Users/|[A-Z]:\\\\)", text)
    code = "\n".join(cells(path, "code"))
    assert "http" not in code
    assert not re.search(r"load_st_paul\([^)]*published", code)  # the authors' demand has to be fetched


def test_links_between_notebooks_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", "\n".join(cells(path, "markdown"))):
        if "://" not in target:
            assert (FOLDER / target).exists(), target


def test_your_city_runs_with_the_files_of_another_city(tmp_path):
    """A drawn city's files, put in as its second cell says: the line that reads a user's own two files, uncommented."""
    notebook = json.loads((FOLDER / "06_your_city.ipynb").read_text("utf-8"))
    (cell,) = (cell for cell in notebook["cells"] if cell["source"][0].startswith("calls, stations = "))
    practice, own, *rest = cell["source"]
    assert practice.rstrip().endswith("practice_calls()")
    cell["source"] = [own.removeprefix("# or your own: "), *rest[:-1], "assert not practice"]
    (tmp_path / "own.ipynb").write_text(json.dumps(notebook), "utf-8")
    east, north = np.random.default_rng(3).random((2, 8))
    stations = pd.DataFrame({"name": list("ABCDEFGH"), "lon": 0.2 * east, "lat": 45 + 0.15 * north})
    stations.to_csv(tmp_path / "stations.csv", index=False)
    synthetic_log(stations, calls_per_day=60, days=28, rng=1).to_frame().to_csv(tmp_path / "calls.csv", index=False)
    command = ["-m", "jupyter", "nbconvert", "--execute", "--to", "notebook", "--output", "ran", "own.ipynb"]
    done = subprocess.run([sys.executable, *command], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cells = json.loads((tmp_path / "ran.ipynb").read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", ()) for output in outputs) >= 4


def test_the_dashboard_is_one_panel_and_stored_as_the_others():
    test_the_kernel_is_the_plain_one(DASHBOARD)
    test_only_the_start_page_is_stored_with_what_it_shows(DASHBOARD)
    (code,) = cells(DASHBOARD, "code")
    assert code.startswith("import emsopt as eo\n\neo.panels.dashboard()")


def run(code, names):
    exec(code, names)  # noqa: S102 - the notebooks are ours


def exercises(path):
    """Yield (solution, check) of every exercise: the code cell after a solution checks its ``answer``."""
    notebook = json.loads(path.read_text("utf-8"))["cells"]
    for cell, following in pairwise(notebook):
        solution = SOLUTION.search("".join(cell["source"]))
        if solution:
            assert following["cell_type"] == "code"
            yield solution[1], "".join(following["source"])


def test_solutions_solve_their_exercises(path):
    """A solution needs only the first cell; the check accepts it, waits for an answer, and hints after a wrong one."""
    first = {}
    run(cells(path, "code")[0], first)
    for number, (solution, check) in enumerate(exercises(path), 1):
        name = f"{path.stem[:2]}.{number}"
        assert check.startswith(ANSWER)
        assert check.endswith(f'\nprint(eo.datasets.check_answer("{name}", answer))')
        assert not re.search(r"\d", check.replace(name, ""))  # it does not hold the answer
        names = dict(first)
        run(solution, names)
        width, right = WIDTHS[name], names["answer"]
        assert check_answer(name, None) == "Put your answer in."
        assert check_answer(name, right) == check_answer(name, right + 0.4 * width) == "Right."
        for wrong in (right - 8 * width, right + 8 * width):  # neither is right with another demand
            assert check_answer(name, wrong).startswith("Not yet: ")
    assert number >= 2
