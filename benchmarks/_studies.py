"""What the studies share: options of the command line, and the files of finished cases and of tables.

Finished cases are kept in ``emsopt-results/``, so that an interrupted study can be resumed. If a method has changed,
remove its file there. Tables go to where `emsopt.datasets.load_study` finds them, those of a tiny study (``--smoke``)
to the folder of the cases.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

import emsopt as eo

sys.path.append(str(Path(__file__).parents[1] / "notebooks"))  # for what only the papers' claims need
STORED = Path(eo.__file__).parent / "data" / "studies"
QUARTILES = {"q25": lambda values: values.quantile(0.25), "q75": lambda values: values.quantile(0.75)}


def parser(description, *, runs=None):
    """Return a parser of the options that all studies have."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--runs", type=int, default=runs, help="number of replications")
    result.add_argument("--backend", choices=["serial", "processes"], default="serial")
    result.add_argument("--workers", type=int, help="number of processes")
    result.add_argument("--folder", type=Path, default=Path("emsopt-results"), help="for the finished cases")
    result.add_argument("--smoke", action="store_true", help="run a tiny study, which is kept in the folder")
    return result


def run(task, cases, name, options):
    """Run a study, or resume it, and return its rows."""
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / f"{_full(name, options)}.jsonl"
    return eo.study.run(task, cases, file=file, backend=options.backend, workers=options.workers, progress=True)


def table_file(name, options, suffix=".csv"):
    """Return where the table of a study is stored."""
    return (options.folder if options.smoke else STORED) / f"{_full(name, options)}{suffix}"


def beside_stored(table, file, keys):
    """Return a table after the stored rows with other values of its keys, so that parts can be run one at a time."""
    if not file.exists():
        return table
    stored, new = pd.read_csv(file), pd.MultiIndex.from_frame(table[keys])
    return pd.concat([stored[~pd.MultiIndex.from_frame(stored[keys]).isin(new)], table], ignore_index=True)


def _full(name, options):
    return f"smoke_{name}" if options.smoke else name
