"""``import emsopt`` is cheap, and evaluating a deployment needs no maps and no widgets."""

import subprocess
import sys

HEAVY = {"geopandas", "matplotlib", "folium", "ipywidgets", "sklearn", "pandas"}
EVALUATE = """
city = emsopt.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=20)
for evaluator in ("approximate", "exact", "simulation"):
    emsopt.evaluators.evaluate(city, [0, 1], evaluator).mean_response
emsopt.Objective(city, 1, metric=("late", 8.0))([1])
emsopt.evaluators.evaluate_all(city, 1)
emsopt.operations.simulate(emsopt.operations.System(city), [0, 1], calls=100).mean_response
"""


def test_import_loads_nothing_heavy_and_evaluating_a_deployment_no_maps_or_widgets():
    tell = "print(*{name.split('.')[0] for name in sys.modules})\n"
    code = f"import sys, emsopt\n{tell}emsopt.datasets.load_st_paul(){EVALUATE}{tell}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported, evaluated = (set(line.split()) for line in done.stdout.splitlines())
    assert imported & {"emsopt", "numba", "scipy", *HEAVY} == {"emsopt"}
    assert evaluated & {"numba", *HEAVY} == {"numba"}
