"""Rebuild the table of the best expected value of every control set of the ready-made control problems.

    python data/build_bocvs.py    print the table, write emsopt/data/bocvs/optima.csv and SHA256SUMS

Each row is found by `emsopt.problems.ControlProblem.best_of_set`: the problem's objective is averaged over 16,384
common quasi-Monte-Carlo points, and searched from the best of 4,096 points and from the best point of all variables.
The plant's objective needs its published file (``EMSOPT_DATA``, or a download). Takes some five minutes.
"""

import csv

from build_st_paul import PACKAGE, write_checksums

import emsopt as eo

MAKERS = (
    eo.problems.hartmann_control,
    eo.problems.ackley_control,
    eo.problems.levy_control,
    eo.problems.airfoil_control,
    eo.problems.plant_control,
    eo.problems.ems_control,
    eo.problems.hill_control,
)


def main():
    rows = []
    for make in MAKERS:
        for variance in eo.problems.control.ready_made.MARGINAL_VARIANCES:
            problem = make(variance=variance)
            for i in range(len(problem.control_sets)):
                value, x = problem.best_of_set(i)
                rows.append((problem.objective.name, variance, i, f"{value:.10g}", " ".join(f"{v:.8f}" for v in x)))
                print(*rows[-1], flush=True)
    with open(PACKAGE / "bocvs" / "optima.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("problem", "variance", "set", "value", "x"), *rows])
    write_checksums()


if __name__ == "__main__":
    main()
