"""Write the digests of the right answers to the notebooks' exercises into emsopt/data/exercises.csv.

    python data/build_exercises.py

Widths and hints are written there by hand. A solution runs after the first cell of its notebook, with either demand of
St. Paul where the notebook can choose it.
"""

import json
import re
from math import floor
from pathlib import Path

import pandas as pd

import emsopt as eo

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "emsopt" / "data" / "exercises.csv"
SOLUTION = re.compile(r"<summary>Solution</summary>\n\n```python\n(.*?)```", re.DOTALL)


def answers(path):
    """Yield the right answers to each exercise of a notebook, one for each demand that it can choose."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    starts = list(dict.fromkeys([first, first.replace('demand = "embedded"', 'demand = "published"')]))
    for solution in SOLUTION.findall("\n".join("".join(cell["source"]) for cell in cells)):
        right = []
        for start in starts:
            names = {}
            exec(start + "\n" + solution, names)  # noqa: S102 - the notebooks are ours
            right.append(names["answer"])
        yield right


table = pd.read_csv(TABLE, dtype=str, keep_default_na=False).set_index("exercise")
for notebook in sorted((ROOT / "notebooks").glob("0*.ipynb")):
    for number, right in enumerate(answers(notebook), 1):
        name = f"{notebook.stem[:2]}.{number}"
        width = float(table.loc[name, "width"])
        digests = [eo.datasets.exercises.answer_digest(name, floor(answer / width)) for answer in right]
        table.loc[name, "digests"] = " ".join(dict.fromkeys(digests))
table.to_csv(TABLE, lineterminator="\n")
