r"""Ready-made control problems: those of the paper, one of an emergency service, and a small example.

"Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs", section "Experiments" and
appendix C. All are to be maximised on the unit cube; functions to be minimised are negated. Variables are counted from
0 here and from 1 in the paper. Uncontrolled variables have a truncated normal distribution around 0.5. The standard
deviation of the noise is the paper's, 0.01 on values and 0.02 on costs.

The best expected value of each control set for the paper's variances is stored (``data/build_bocvs.py``). For other
variances it is computed on demand.

**Airfoil.** The inputs are frequency, angle of attack, chord length, free-stream velocity and displacement thickness of
the suction side. The first and last enter as logarithms, and all are min-max scaled to [0, 1]. The function is the
posterior mean of a Gaussian process of the standardised sound pressure level in 1503 wind-tunnel measurements (Brooks,
T. F., Pope, D. S. and Marcolini, M. A., 1989, NASA; UCI machine learning repository, "Airfoil self-noise", CC BY 4.0).
It has a Matérn 5/2 kernel with the hyperparameters published with the code of Tay et al. (2023).

**Plant.** The inputs are Ca, B, NH3 and K (log µM) and pH, in the ranges of `PLANT_RANGES`; the function is the
posterior mean of a sparse Gaussian process of the standardised leaf area of Marchantia, trained on data that are not
public. Its parameters are 464 inducing points Z, a squared-exponential kernel and whitened means q:

.. math:: f(x) = k(x, Z) L^{-\top} q, \qquad L L^\top = k(Z, Z) + 10^{-6} I

They come from the code of Tay et al. (2023), MIT licence, and are not part of this package. The file
``gp_leaf_dict.p`` is searched in ``$EMSOPT_DATA`` and ``$EMSOPT_DATA/plant_growth``; if it is not found, it is
downloaded and its checksum verified. The file is a pickle, but it is parsed as data and none of its code is executed.

**The ambulance service** is not from a paper: minutes of response time saved, minus the burden of each setting. A
service tries some of five settings for a month, while the others vary around their usual midpoint. Response times are
computed for St. Paul with the approximate hypercube and units at the sites of the p-median. On the unit cube, 0 is the
slowest value of a setting and 1 the fastest:

==============  ============================  ==============================================================
setting         range                         what it does
==============  ============================  ==============================================================
``fleet``       7 to 12 units                 interpolated between whole numbers of units
``turnout``     2.75 to 0.75 min              time from call to departure
``relocation``  never to always               share of time in which free units are relocated to the best
                                              sites for their number while others are busy
``demand``      1.25 to 0.75 of the calls     the other callers are helped without an ambulance
``turnaround``  1.25 to 0.75 of the time      time for which a call occupies a unit
==============  ============================  ==============================================================

.. math:: f(u) = R(0) - R(u) - \sum_k b_k u_k^{q_k}

R(u) is the mean response (min) under the settings u. The burdens b_k u_k^q_k, with b_k and q_k from BURDENS and
BURDEN_EXPONENTS and expressed in equivalent minutes of response, are fictitious: crews' pay, haste, driving for
relocation, callers referred elsewhere, pressure at the hospital. With perfect relocation, R is the p-median's response
with the free units, averaged over the number of busy units (Erlang's loss formula).
"""

import csv
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..._files import locate, pickles
from ...city import City
from ...errors import InputError
from ...errors._types import ArrayLike, FloatArray
from ...evaluators import approximate_hypercube, p_median
from ..functions import ackley6, hartmann6, levy6
from ..problem import Problem
from .marginals import TruncatedNormal
from .problem import ControlProblem, evaluate_in_chunks

# mean costs of the seven control sets, in their order
COSTS = {"cheap": (0.01, 0.01, 0.01, 0.1, 0.1, 0.1, 1.0), "moderate": (0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 1.0)}
MARGINAL_VARIANCES = (0.02, 0.04)
SETS_OF_TWELVE = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11), tuple(range(6)), tuple(range(6, 12)), tuple(range(12)))
AIRFOIL_SETS = ((3, 4), (1, 4), (0, 3), (1, 2), (2, 4), (0, 1), (2, 3))
PLANT_SETS = ((0, 1), (2, 3), (3, 4), (0, 1, 2), (1, 2, 3), (2, 3, 4), (0, 1, 2, 3, 4))

EMS_SETTINGS = ("fleet", "turnout", "relocation", "demand", "turnaround")
FLEET_SIZES = np.arange(7, 13)
TURNOUT_MINUTES = (2.75, 0.75)
LOAD_FACTORS = np.linspace(0.5, 1.6, 12)  # values of their product, on which alone dispatch depends, in the tables
BURDENS = np.array([0.75, 1.1, 0.12, 0.35, 0.3])
BURDEN_EXPONENTS = np.array([1.0, 2.0, 2.0, 2.0, 2.0])
EMS_SETS = (
    ("turnout",),
    ("turnaround",),
    ("turnout", "relocation"),
    ("demand", "turnaround"),
    ("fleet",),
    ("turnout", "relocation", "demand", "turnaround"),
    EMS_SETTINGS,
)
EMS_COSTS = (0.05, 0.1, 0.1, 0.2, 0.3, 0.4, 1.0)  # of a trial month of each set, relative to the most expensive one


def _squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the squared distances between the rows of two arrays, (n, d) and (m, d): shape (n, m)."""
    return np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0)


# -- airfoil --

LOGARITHMIC_INPUTS = [0, 4]
AIRFOIL_LENGTHSCALES = [
    0.1764404817425009,
    0.3049778670000162,
    0.17758582099512163,
    0.8669498345595926,
    0.2675409612248587,
]
AIRFOIL_OUTPUTSCALE = 0.9180261123887418
AIRFOIL_NOISE_VARIANCE = 0.6954410109527837
AIRFOIL_MEAN = -0.5191142823163545
AIRFOIL_BEST_X = [0.14708422, 0.46614944, 0.27328699, 0.92940424, 0.77456725]
AIRFOIL_WORST = -2.862809487


def airfoil() -> Problem:
    """Return the problem of maximising an airfoil's standardised noise level: 5 inputs, maximum 2.06996."""
    variables = ("frequency", "angle", "chord", "velocity", "thickness")
    return Problem("airfoil", _sound_level, [(0, 1)] * 5, "max", 2.069964183723336, AIRFOIL_BEST_X, variables=variables)


def airfoil_measurements() -> tuple[FloatArray, FloatArray]:
    """Return the scaled inputs, (1503, 5), and the standardised sound pressure levels, (1503,), of the airfoil."""
    table = np.loadtxt(locate.package_file("bocvs", "airfoil_self_noise.csv"), delimiter=",", skiprows=1)
    X, y = table[:, :5], table[:, 5]
    X[:, LOGARITHMIC_INPUTS] = np.log(X[:, LOGARITHMIC_INPUTS])
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, (y - y.mean()) / y.std()


def _matern(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the Matérn 5/2 kernel with variance and lengthscale 1 between rows, (n, d) and (m, d): shape (n, m)."""
    r = np.sqrt(5 * _squared_distances(A, B))
    return (1 + r + r**2 / 3) * np.exp(-r)


@cache
def _airfoil_process() -> tuple[FloatArray, FloatArray]:
    """Return the inputs divided by the lengthscales, (1503, 5), and the coefficients of the posterior mean, (1503,)."""
    from scipy.linalg import cho_factor, cho_solve

    X, y = airfoil_measurements()
    X = X / AIRFOIL_LENGTHSCALES
    K = AIRFOIL_OUTPUTSCALE * _matern(X, X)
    # exact: expanded distances of a point to itself are not 0
    K[np.diag_indices_from(K)] = AIRFOIL_OUTPUTSCALE + AIRFOIL_NOISE_VARIANCE
    return X, AIRFOIL_OUTPUTSCALE * cho_solve(cho_factor(K, lower=True), y - AIRFOIL_MEAN)


def _sound_level(points: FloatArray) -> FloatArray:
    X, coefficients = _airfoil_process()
    return AIRFOIL_MEAN + evaluate_in_chunks(lambda x: _matern(x, X) @ coefficients, points / AIRFOIL_LENGTHSCALES, 64)


# -- plant --

PLANT_SOURCE = "sebtsh/cost-varying-variable-subsets-BO/16ffdab13ede72fbed2427995a1c27b75993135d"  # with the commit
PLANT_URL = f"https://raw.githubusercontent.com/{PLANT_SOURCE}/data/plant/gp_leaf_dict.p"
PLANT_SHA256 = "95333ca48f57b6cdcb2b1917da2eb738c0ca8a940180aea396eb71abf4e52a91"

PLANT_RANGES = np.array([(0, 7.7), (0, 3.5), (0, 10.4), (8.9, 11.3), (2.5, 6.5)])
JITTER = 1e-6  # that of GPflow, with which q was trained
PLANT_BEST_X = [0.94758581, 0.98113916, 0.66430333, 0.22462398, 0.7498263]
PLANT_WORST = -1.13261281


def plant() -> Problem:
    """Return the problem of maximising a plant's standardised leaf area, 5 inputs; raise if its file is not found."""
    plant_process()  # raises here rather than at the first evaluation
    variables = ("Ca", "B", "NH3", "K", "pH")
    return Problem("plant", _leaf_area, [(0, 1)] * 5, "max", 2.1941161756540035, PLANT_BEST_X, variables=variables)


@cache
def plant_process() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the plant's model: lengthscales, (5,), inducing points divided by them, (464, 5), coefficients, (464,)."""
    from scipy.linalg import solve_triangular

    raw = pickles.read_arrays(locate.find_data("plant_growth/gp_leaf_dict.p", PLANT_URL, PLANT_SHA256))
    lengthscales = np.logaddexp(0, raw[".kernel.kernels[0].lengthscales"])  # the file has inverse softpluses
    variance = np.logaddexp(0, raw[".kernel.kernels[0].variance"])
    Z = raw[".inducing_variable.inducing_variable_list[0].Z"] / lengthscales
    K = variance * np.exp(-_squared_distances(Z, Z) / 2)
    L = np.linalg.cholesky(K + JITTER * np.eye(len(Z)))
    return lengthscales, Z, variance * solve_triangular(L, raw[".q_mu"][:, 0], lower=True, trans=1)


def _leaf_area(points: FloatArray) -> FloatArray:
    lengthscales, Z, coefficients = plant_process()
    low, high = PLANT_RANGES.T
    scaled = (low + (high - low) * points) / lengthscales
    return evaluate_in_chunks(lambda x: np.exp(-_squared_distances(x, Z) / 2) @ coefficients, scaled, 128)


# -- ambulance service --


def ems_service() -> Problem:
    """Return the problem of maximising the minutes that an ambulance service saves by its settings: 5 inputs."""
    best_x = [0.6601537, 0.90909089, 1.0, 0.26659574, 0.31841648]
    return Problem("ems", _minutes_saved, [(0, 1)] * 5, "max", 1.84896581728768, best_x, variables=EMS_SETTINGS)


@cache
def _travel_tables() -> list[Any]:
    """Return the mean travel time (min), without and with relocation, as splines over units and load (1 is today's)."""
    from scipy.interpolate import RectBivariateSpline

    city = City.load(locate.package_file("st_paul"))
    turnout = float(city.turnout_times[0])
    medians = {p: p_median(city, p) for p in range(1, 13)}  # relocation needs all numbers of free units
    best = np.array([median.objective for median in medians.values()]) - turnout
    static, relocated = np.empty((2, len(FLEET_SIZES), len(LOAD_FACTORS)))
    for k, load in enumerate(LOAD_FACTORS):
        scaled = city.scaled(load)
        offered = load * city.offered_load(1)
        for j, p in enumerate(FLEET_SIZES.tolist()):
            static[j, k] = approximate_hypercube(scaled, medians[p].sites).mean_response - turnout
            busy = np.cumprod(np.append(1.0, offered / np.arange(1, p)))
            relocated[j, k] = busy / busy.sum() @ best[p - 1 :: -1]  # k of p busy: a^k / k!; p - k free
    return [RectBivariateSpline(FLEET_SIZES, LOAD_FACTORS, table, kx=3, ky=3) for table in (static, relocated)]


def _mean_response(u: FloatArray) -> FloatArray:
    """Return the mean response (min), (n,), under the settings u, (n, 5)."""
    units = FLEET_SIZES[0] + u[:, 0] * (FLEET_SIZES[-1] - FLEET_SIZES[0])
    turnout = TURNOUT_MINUTES[0] + u[:, 1] * (TURNOUT_MINUTES[1] - TURNOUT_MINUTES[0])
    first, last = 1.25, 0.75  # relative to today's, for demand and for turnaround
    load = (first + u[:, 3:] * (last - first)).prod(axis=1)  # dispatch depends on calls times service time only
    static, relocated = (spline.ev(units, load) for spline in _travel_tables())
    return turnout + static + u[:, 2] * (relocated - static)


def _minutes_saved(u: FloatArray) -> FloatArray:
    """Return the mean response saved minus the burdens (min), (n,), of the settings u, (n, 5)."""
    slowest = np.zeros((1, 5))
    return _mean_response(slowest) - _mean_response(u) - u**BURDEN_EXPONENTS @ BURDENS


def _hill(u: FloatArray) -> FloatArray:
    return np.exp(-(((u[:, 0] - 0.7) / 0.15) ** 2) / 2 - ((u[:, 1] - 0.4) / 0.5) ** 2 / 2)


def _add_irrelevant_inputs(problem: Problem) -> Problem:
    """Return a problem as one of maximisation on the unit cube, with six further inputs that do not matter."""
    base = problem.on_unit_cube()
    best_x = np.append(np.asarray(base.best_x), np.full(6, 0.5))  # irrelevant inputs may have any value
    name, relevant = problem.name.rstrip("0123456789"), base.dimension  # "hartmann6" has 12 inputs here
    function = lambda u: base.function(u[:, :relevant])
    return Problem(name, function, [(0, 1)] * len(best_x), "max", base.best_value, best_x)


DOCSTRING_TEMPLATE = """Return {what}.

    Parameters
    ----------
    costs : {{"cheap", "moderate"}} or array_like, shape ({m},)
        Mean costs of the control sets; the names are keys of ``COSTS``, for seven sets.
    variance : float
        Variance of every uncontrolled variable; the paper has 0.02 and 0.04.

    Returns
    -------
    ControlProblem
        To change its noise, use ``dataclasses.replace(problem, noise_sd=..., cost_noise_sd=...)``.

    Examples
    --------
    >>> import emsopt as eo
    >>> len(eo.problems.{name}_control().control_sets){skip}
    {m}
    """


def _problem_factory(
    name: str,
    what: str,
    objective: Callable[[], Problem],
    control_sets: Sequence[Sequence[int | str]],
    worst: float,
    usual: tuple[str | Sequence[float], float] = ("cheap", 0.02),
) -> Callable[..., ControlProblem]:
    """Return a function that returns a control problem; ``usual`` are its default costs and variance."""

    def make(costs: str | ArrayLike = usual[0], variance: float = usual[1]) -> ControlProblem:
        if isinstance(costs, str):
            if costs not in COSTS or len(control_sets) != len(COSTS[costs]):
                wanted = f"{' or '.join(map(repr, COSTS))}, or {len(control_sets)} numbers"
                raise InputError(f"`costs` must be {wanted}; got {costs!r}.")
            costs = COSTS[costs]
        f, X = objective(), TruncatedNormal(variance)
        with open(locate.package_file("bocvs", "optima.csv"), encoding="utf-8", newline="") as file:
            rows = [r for r in csv.DictReader(file) if (r["problem"], float(r["variance"])) == (f.name, variance)]
        values, points = [float(r["value"]) for r in rows], [list(map(float, r["x"].split())) for r in rows]
        return ControlProblem(f, control_sets, costs, X, worst=worst, set_values=values, set_points=points)

    make.__name__ = make.__qualname__ = f"{name}_control"
    skip = "  # doctest: +SKIP" if name == "plant" else ""  # as its file is not part of the package
    make.__doc__ = DOCSTRING_TEMPLATE.format(name=name, what=what, m=len(control_sets), skip=skip)
    return make


hartmann_control = _problem_factory(
    "hartmann",
    "the negated Hartmann function of 6 inputs, with 6 irrelevant inputs; maximum 3.32237",
    lambda: _add_irrelevant_inputs(hartmann6()),
    SETS_OF_TWELVE,
    worst=0.0,
)
ackley_control = _problem_factory(
    "ackley",
    "the negated Ackley function of 6 inputs on [-32.768, 32.768]⁶, with 6 irrelevant inputs; maximum 0 at the mean",
    lambda: _add_irrelevant_inputs(ackley6()),
    SETS_OF_TWELVE,
    worst=-22.33,
)
# Levy's function is far below its average in few places only: from -415 all sets are acceptable at a tolerance of 0.1.
levy_control = _problem_factory(
    "levy",
    "the negated Levy function of 6 inputs on [-10, 10]⁶, with 6 irrelevant inputs",
    lambda: _add_irrelevant_inputs(levy6()),
    SETS_OF_TWELVE,
    worst=-415.0,
)
airfoil_control = _problem_factory(
    "airfoil", "the noise of an airfoil, with seven control sets of two variables", airfoil, AIRFOIL_SETS, AIRFOIL_WORST
)
plant_control = _problem_factory("plant", "the growth of a plant, as a control problem", plant, PLANT_SETS, PLANT_WORST)
ems_control = _problem_factory(
    "ems",
    "the minutes of response that an ambulance service saves, with the costs of a trial month of each control set",
    ems_service,
    EMS_SETS,
    worst=0.0,
    usual=(EMS_COSTS, 0.04),
)
hill_control = _problem_factory(
    "hill",
    "a minimal example, a ridge over 2 variables: to control only the first is nearly as good as to control both",
    lambda: Problem("hill", _hill, [(0, 1)] * 2, "max", 1.0, [0.7, 0.4]),
    ((1,), (0,), (0, 1)),
    worst=0.0,
    usual=((0.1, 0.3, 1.0), 0.02),
)
