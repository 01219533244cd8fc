"""Stored results of the package's own studies."""

from typing import TYPE_CHECKING

from .._files import locate
from ..errors._validate import choice

if TYPE_CHECKING:
    import pandas as pd


def load_study(name: str) -> "pd.DataFrame":
    """Return the stored results of a study; the script named with each study wrote them and sets its random seeds.

    A regret is how much worse a method did than the best possible choice.

    Parameters
    ----------
    name : str
        "approximation_error_15": mean response by the exact and by the approximate hypercube (``exact_min``,
        ``approximate_min``) and the largest error of a unit's utilisation in 100 random cities of 15 units for each
        load and geometry; "approximation_error_20", "approximation_error_30" and, at light loads,
        "approximation_error_light" for fewer cities, those of 30 units simulated, with half the width of the 95 %
        confidence interval (``half_width_min``). "approximation_error_st_paul": one row per load with the errors of the
        mean response (approximate minus exact, min) over all deployments of St. Paul. All are written by
        ``benchmarks/approximation_error.py``.

        "location_grid", "location_st_paul", "location_late", "location_long", "location_ablation" (GP-pM with each of
        its repairs alone and without each): the ``best`` value of each run by ``evaluation``, one row per improvement
        and one for the end, with the optimizer's ``cpu_seconds``, the best known value (``best_known``) and the value
        of the p-median deployment (``p_median``); "location_layouts": the same for ten cities of 30 sites and 15 units
        by ``layout`` of demand and load; "location_tables": only the last row of each run. Read them with
        `emsopt.study.outcomes`. Written by ``benchmarks/location_study.py``.

        "navigation_agents", "navigation_parametrisation", "navigation_lengthscale", "navigation_sparse": cumulative
        regret (Wh, rectified, as `emsopt.bandits.navigation` defines it) and the number of distinct edges driven, at
        every tenth round or less often, for five runs of every policy on each route; the last has three runs, in
        Luxembourg one of 150 rounds. They also have ``excess_energy``, the expected energy up to the round above that
        of the path of least rectified cost (Wh, not rectified; not for "gp-ts-joint"; in Luxembourg and in
        "navigation_sparse" up to round 150). "navigation_agents" has the rectified cost of that path (``best_cost``)
        and fifteen further runs of 150 rounds. In Monaco: "navigation_shifted", with the potential energy subtracted
        before rectifying; "navigation_simple", with paths that pass no junction twice (``loops``: up to the round, how
        often the shortest path does); "navigation_optimism", UCB with smaller confidence parameters;
        "navigation_printed", one run on each route of Monaco with the sparse process as printed.
        "navigation_exploration": each edge driven in the first of these runs, with the number of visits and the round
        of the first visit. Written by ``benchmarks/navigation_study.py``.

        "comparison": what `emsopt.planning.compare` states after each of many synthetic logs of St. Paul, one row each:
        ``rule`` by which the second deployment was chosen, ``weeks`` and ``calls`` of the log, the true difference of
        mean response (``truth``, min), its stated ``mean``, 90 % interval (``low``, ``high``) and
        ``probability_better``, the weeks that would settle it (``more_weeks``) and the standard deviation that an
        unlimited log would leave (``unlimited_sd``). Written by ``benchmarks/comparison_study.py``.

        "bocvs": which variables to control. One row per run and amount spent (``cost``): the number of ``plays`` so
        far, how many of them played the cheapest set whose value is within the tolerance (``on_target``), the regrets
        ``simple_regret``, ``quality_regret``, ``cost_regret`` and ``weighted_regret`` that
        `emsopt.optimizers.control.search` defines, the share of played sets whose mean cost lies within the confidence
        radius of its estimate (``covered``), and the largest error of such an estimate (``cost_error``). Read it with
        ``notebooks/papers/control_regret.py``. "bocvs_authors_code": the same of learners after
        the authors' code ("authors-code", and "etc-by-index" with its groups). "bocvs_horizon": regrets by budget of
        the method for unknown costs and of UCB-CVS. These are written by ``benchmarks/bocvs_study.py``. "bocvs_bounds":
        regrets by number of plays, with the bounds of the theorems; "bocvs_exploration": the number of plays in which
        exactly the acceptable sets are feasible, by length of the exploration; both by
        ``benchmarks/bocvs_theory_study.py``.

        "boke_noise_free_curves", "boke_noisy_curves", "boke_sprinkler_curves", "boke_tuning_curves": mean, median and
        quartiles of the simple regret (in tuning: 1 - R²) of the methods on boxes after every other ``evaluation``;
        "boke_noise_free_ends" and so on: the final regret of each run, for thirty seeds. Those of the sprinkler also
        have the optimizer's ``cpu_seconds``, and runs of "gp-ei" without them. "boke_seconds": mean CPU seconds of a
        run, with standard error, all methods measured in turn. "boke_noise": with noise, regrets of the recommended,
        the luckiest and the best point of each run. "boke_fill": fill distance of designs. "boke_constant": the final
        regret of each run of BOKE and BOKE+ with other noise constants (``noise_sd``); "boke_forms": the same for forms
        of the paper's source; "boke_sensitivity": for other constants, and for "training", the mean by which to choose
        them, in units of random points' regret. "boke_theory": cumulative regret after t steps on finite sets, with its
        bounds and how many steps exceed theirs (``violations``). All are written by ``benchmarks/boke_study.py``.
        "boke_complexity": CPU seconds of the parts of an optimizer's step by number of points t, "boke_runs": CPU
        seconds of one run by number of ``evaluations``; both by ``benchmarks/boke.py``.

    Examples
    --------
    >>> import emsopt as eo
    >>> sorted(eo.datasets.load_study("location_grid")["method"].unique())[:3]
    ['annealing', 'bocs', 'genetic']
    """
    import pandas as pd

    files = {path.name.split(".")[0]: path for path in sorted(locate.package_file("studies").iterdir())}
    return pd.read_csv(files[choice(name, "name", tuple(files))])
