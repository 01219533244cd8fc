"""Turn the incident log of San José Fire into what ships with the package.

    python data/build_san_jose.py                  write emsopt/data/san_jose and SHA256SUMS
    python data/build_san_jose.py --export FOLDER  first make data/raw/san_jose from the files as published

Of what was published, the incident number and the category of the incident are left out, and coordinates are rounded to
three decimals (about 100 m), before anything is stored. The second step renames the columns and rewrites the times,
"1/1/15 12:05 AM", in ISO 8601; every row, stamp and unit stays as it was recorded, mistakes included.
"""

import argparse
import gzip
from pathlib import Path

import pandas as pd
from build_st_paul import PACKAGE, write_checksums

RAW = Path(__file__).resolve().parent / "raw" / "san_jose"
CALLS, STATIONS = "calls_2015-01-01_to_14.csv", "stations.csv"
NOT_STORED = ["Incident_No", "Final_Incident_Category"]
STAMPS = {
    "Date_Time_Of_Event": "time",
    "Dispatched_Time": "dispatched",
    "Unit_On_The_Way_Time": "en_route",
    "Unit_On_Scene_TimeStamp": "on_scene",
    "Cleared_TimeStamp": "cleared",
}
COLUMNS = STAMPS | {
    "On_Scene_Unit": "unit",
    "Unit_Count": "units_sent",
    "Priority": "priority",
    "Final_Incident_Type": "type",
    "Longitude": "lon",
    "Latitude": "lat",
}


def store_raw(export):
    """Write the raw files from the published ones, without what must not be stored."""
    for name in (CALLS, STATIONS):
        table = pd.read_csv(export / name, dtype=str).drop(columns=NOT_STORED, errors="ignore")
        for column in table.columns[table.columns.str.lower().isin(["latitude", "longitude"])]:
            table[column] = table[column].astype(float).map("{:.3f}".format)
        table.to_csv(RAW / name, index=False, lineterminator="\n")


def read_raw():
    """Return the tables of calls and stations as they ship, all cells as text."""
    calls = pd.read_csv(RAW / CALLS, dtype=str)[list(COLUMNS)].rename(columns=COLUMNS)
    for column in STAMPS.values():
        calls[column] = pd.to_datetime(calls[column], format="%m/%d/%y %I:%M %p").dt.strftime("%Y-%m-%d %H:%M")
    stations = pd.read_csv(RAW / STATIONS, dtype=str).rename(columns={"longitude": "lon", "latitude": "lat"})
    return {"calls": calls, "stations": stations[["name", "lon", "lat"]]}


def packed(table):
    """Return the content of a compressed file, always the same bytes."""
    return gzip.compress(table.to_csv(index=False, lineterminator="\n").encode(), mtime=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", type=Path, metavar="FOLDER", help=f"folder with {CALLS} and {STATIONS}")
    options = parser.parse_args()
    if options.export:
        store_raw(options.export)
    for name, table in read_raw().items():
        content = packed(table)
        (PACKAGE / "san_jose" / f"{name}.csv.gz").write_bytes(content)
        print(f"{name}: {table.shape[0]} rows, {table.shape[1]} columns, {len(content) / 1000:.0f} kB")
    write_checksums()


if __name__ == "__main__":
    main()
