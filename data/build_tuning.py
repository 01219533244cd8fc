"""Turn the raw data of the tuning tasks into what ships with the package.

    python data/build_tuning.py    write emsopt/data/tuning and SHA256SUMS (needs pyarrow)

Wine: the eleven measurements and the quality, without the columns that were added (whether good, red or white).
California: as published. Numbers are kept to seven digits.
"""

import gzip
import io
from pathlib import Path

import pandas as pd
from build_st_paul import PACKAGE, write_checksums

RAW = Path(__file__).resolve().parent / "raw" / "tuning"


def write(table, name):
    """Write a table, always to the same bytes."""
    text = io.StringIO()
    table.to_csv(text, index=False, float_format="%.7g", lineterminator="\n")
    packed = gzip.compress(text.getvalue().encode(), mtime=0)
    (PACKAGE / "tuning" / f"{name}.csv.gz").write_bytes(packed)
    print(f"{name}: {table.shape[0]} rows, {table.shape[1]} columns, {len(packed) / 1024:.0f} KB")


def main():
    (PACKAGE / "tuning").mkdir(exist_ok=True)
    write(pd.read_csv(RAW / "winequality.csv").drop(columns=["good", "color"]), "wine")
    write(pd.read_parquet(RAW / "california_housing.parquet.brotli"), "california")
    write_checksums()


if __name__ == "__main__":
    main()
