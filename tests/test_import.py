"""``import emsopt`` is cheap, and evaluating a deployment needs no maps and no widgets."""

import subprocess
import sys

HEAVY = ("geopandas", "matplotlib", "folium", "ipywidgets", "sklearn")
EVALUATE = """
city = emsopt.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=20)
for evaluator in ("approximate", "exact", "simulation"):
    emsopt.evaluators.evaluate(city, [0, 1], evaluator).mean_response
emsopt.Objective(city, 1, metric=("late", 8.0))([1])
emsopt.evaluators.evaluate_all(city, 1)
emsopt.operations.simulate(emsopt.operations.System(city), [0, 1], calls=100).mean_response
"""


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code):
    return set(python(f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})").split())


def test_import_loads_nothing_heavy():
    loaded = loaded_by("import emsopt")
    assert "emsopt" in loaded
    assert not loaded.intersection((*HEAVY, "pandas", "numba", "scipy"))


def test_evaluating_a_deployment_loads_no_maps_or_widgets():
    loaded = loaded_by("import emsopt\nemsopt.datasets.load_st_paul()\n" + EVALUATE)
    assert "numba" in loaded
    assert not loaded.intersection((*HEAVY, "pandas"))
