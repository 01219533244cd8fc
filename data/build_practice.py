"""Make the practice log: calls and stations of a town that does not exist, and the templates of input files.

    python data/build_practice.py    write emsopt/data/practice and emsopt/data/templates

The town lies in the middle of the Atlantic, so that nobody takes it for theirs. Sixteen weeks of calls comes from homes
by night and from the centre by day, with a weekend's night life; how many come at an hour follows the shape that
ambulance services know, fewest before dawn and most in the afternoon. All of it is drawn with the seed below.

Some faults are put in, for the checks to find: rows without time or place, swapped and missing coordinates, repeated
calls, calls from afar, one address that calls often, and two days without records.
"""

import csv
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).resolve().parent.parent / "emsopt" / "data"
SEED = 20250106
FIRST_DAY, DAYS = np.datetime64("2025-01-06"), 112  # from a Monday
CALLS_PER_HOUR = 1.5
MIDDLE, KM = np.array([-30.0, 45.0]), np.array([1 / 78.63, 1 / 111.2])  # degrees, degrees a km

# share of a quarter, its middle and its width (km)
HOMES = [(0.3, (-3.5, 2.0), 1.2), (0.3, (3.0, 2.5), 1.3), (0.25, (1.0, -4.0), 1.4), (0.15, (-5.0, -3.5), 0.9)]
CENTRE = [(0.7, (0.0, 0.0), 0.8), (0.3, (1.5, -1.0), 0.9)]
NIGHT_LIFE = [(1.0, (0.6, 0.8), 0.25)]
NURSING_HOME = (-3.2, 2.6)

BY_HOUR = np.r_[
    [0.72, 0.62, 0.55, 0.50, 0.48, 0.52, 0.65, 0.84, 1.03, 1.17, 1.26, 1.31],
    [1.33, 1.34, 1.36, 1.38, 1.38, 1.36, 1.30, 1.22, 1.12, 1.01, 0.90, 0.80],
]
BY_WEEKDAY = np.array([1.02, 0.98, 0.98, 0.99, 1.05, 1.02, 0.96])
AT_WORK = np.array([0.1] * 7 + [0.3, 0.5] + [0.6] * 8 + [0.45, 0.3] + [0.15] * 5)  # share of calls from the centre

STATIONS = [
    ("Harbour", (0.2, -0.6), 1.5),
    ("Old Town", (-0.5, 0.7), 1.5),
    ("North-west", (-3.6, 2.2), 1.2),
    ("North-east", (3.2, 2.4), 1.2),
    ("South", (1.1, -4.1), 1.3),
    ("Mill Lane", (-5.1, -3.3), 1.5),
    ("University", (2.0, -1.4), 1.4),
    ("West Gate", (-2.3, -0.8), 1.4),
    ("Hospital", (0.9, 3.6), 1.0),
    ("Airfield", (6.0, -1.5), 2.0),
]


def draw_places(quarters, n, rng):
    """Return n places of people in some quarters, km from the middle."""
    shares = np.array([share for share, _, _ in quarters])
    which = rng.choice(len(quarters), n, p=shares / shares.sum())
    middles = np.array([middle for _, middle, _ in quarters])[which]
    widths = np.array([width for _, _, width in quarters])[which]
    return middles + widths[:, None] * rng.standard_normal((n, 2))


def draw_calls(rng):
    """Return minutes since the first day, places (km) and minutes of service, in the order of time."""
    hour = np.arange(DAYS * 24)
    rate = CALLS_PER_HOUR * (BY_HOUR / BY_HOUR.mean())[hour % 24] * BY_WEEKDAY[hour // 24 % 7]
    hour = np.repeat(hour, rng.poisson(rate))
    n = len(hour)
    minute = hour * 60 + rng.integers(0, 60, n)
    weekday, clock = hour // 24 % 7, hour % 24
    places = draw_places(HOMES, n, rng)
    working = rng.random(n) < AT_WORK[clock] * np.where(weekday < 5, 1.0, 0.6)
    places[working] = draw_places(CENTRE, working.sum(), rng)
    late = np.isin(weekday * 24 + clock, [4 * 24 + h for h in (22, 23)] + [5 * 24 + h for h in (0, 1, 2, 3, 22, 23)])
    late |= (weekday == 6) & (clock < 4)
    out = late & (rng.random(n) < 0.5)
    places[out] = draw_places(NIGHT_LIFE, out.sum(), rng)
    places[rng.random(n) < 0.035] = NURSING_HOME
    service = np.maximum(np.rint(rng.lognormal(np.log(46), 0.4, n)), 5)
    order = np.argsort(minute, kind="stable")
    return minute[order], places[order], service[order]


def as_rows(minute, places, service):
    """Return the lines of the file."""
    times = FIRST_DAY.astype("datetime64[m]") + minute.astype("timedelta64[m]")
    degrees = MIDDLE + places * KM
    return [
        [str(t).replace("T", " "), f"{x:.4f}", f"{y:.4f}", f"{s:.0f}"]
        for t, (x, y), s in zip(times, degrees, service, strict=True)
    ]


def add_faults(rows, rng):
    """Put in what the checks are to find; return the rows that are left."""
    rows = [row for row in rows if not "2025-04-16" <= row[0] < "2025-04-18"]  # two days without records
    marked = rng.choice(len(rows), 60, replace=False)
    for kind, k in zip(np.repeat(["time", "place", "swap", "zero", "far"], [8, 12, 12, 6, 3]), marked, strict=False):
        time, x, y, service = rows[k]
        rows[k] = {
            "time": ["", x, y, service],
            "place": [time, "", "", service],
            "swap": [time, y, x, service],
            "zero": [time, "0", "0", service],
            "far": [time, f"{float(x) + 2:.4f}", y, service],
        }[str(kind)]
    for k in sorted(marked[41:])[::-1]:
        rows.insert(k, list(rows[k]))
    return rows


def write_csv(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    print("wrote", path.relative_to(PACKAGE.parent.parent), f"{path.stat().st_size / 1000:.0f} kB")


def main():
    rng = np.random.default_rng(SEED)
    rows = add_faults(as_rows(*draw_calls(rng)), rng)
    columns = ["time", "lon", "lat", "service_min"]
    write_csv(PACKAGE / "practice" / "calls.csv", columns, rows)
    stations = [
        [name, *(f"{v:.4f}" for v in MIDDLE + np.array(place) * KM), turnout] for name, place, turnout in STATIONS
    ]
    header = ["name", "lon", "lat", "turnout_min"]
    write_csv(PACKAGE / "practice" / "stations.csv", header, stations)
    complete = [row for row in rows[:50] if all(row) and float(row[2]) > 44][:5]
    write_csv(PACKAGE / "templates" / "calls.csv", columns, complete)
    write_csv(PACKAGE / "templates" / "stations.csv", header, stations[:3])


if __name__ == "__main__":
    main()
