r"""Approximate hypercube queueing model (Larson 1975).

Equation numbers (1a) to (3) are those of "Optimizing Server Locations in Spatial Queues".

Units are treated as busy independently of each other, and a correction factor reduces the resulting error. The model is
exact if all p units are interchangeable.

=================  ==========================================================================================
symbol             meaning
=================  ==========================================================================================
ρ_i                utilisation of unit i
ρ̄                  mean utilisation, from the Erlang formula
P(k)               probability that k of p units are busy: M/M/p/p (loss) or M/M/p (queue)
Q(p, ρ̄, r)         correction factor (2): probability that r given units are busy and another is free, divided
                   by ρ̄^r (1 - ρ̄)
γ_jl               l-th preferred unit of atom j
q_ij               probability that unit i = γ_jk answers j: Q(p, ρ̄, k-1) ρ_γj1 ... ρ_γj,k-1 (1 - ρ_i)
=================  ==========================================================================================

The p equations (3) say ρ_i = V_i / (1 + V_i), where V_i is the sum of λ_j / μ · Q(p, ρ̄, k-1) ρ_γj1 ... ρ_γj,k-1 over
the atoms j, with k the rank of unit i for atom j. They are not solved as printed: after each step of a fixed-point
iteration the utilisations are scaled to their known sum p ρ̄, as Larson did. At St. Paul's best deployment the printed
equations then have a residual of up to 1e-3. The paper's figures are met only with the scaling. Mean service times may
depend on site and atom; the offered load is then updated in each step (Jarvis 1985).

Limits. On random plane cities of 15 units the mean response is 0.02 to 0.09 min off on average, nearly always too low;
the ranking of deployments is almost that of the exact model. With 100 to 300 units it is up to 3 % too low at loads up
to 0.6; at 0.7 and 0.8 it can be 5 % too high, and 10 % or more if units are placed badly. If mean service times of
units differ, mean costs stay accurate, but the probability that all units are busy is too high: an `AccuracyWarning`
says so. With a queue and a ratio of service times of 10 or more the iteration may fail to converge.

References
----------
Larson, R. C. (1975). Approximating the performance of urban emergency service systems. Operations Research 23(5),
845-868.
Jarvis, J. P. (1985). Approximating the equilibrium behavior of multi-server loss systems. Management Science
31(2), 235-239.
"""

from collections.abc import Callable

import numpy as np

from .._running.parallel import map_rows
from ..city.city import City
from ..city.deployment_space import check_sites
from ..errors import AccuracyWarning, ConvergenceError, _validate, warn
from ..errors._types import FloatArray, IntArray, Progress, Sites
from . import _approximate_equations as equations
from ._unit_order import unit_order
from .evaluation import Evaluation, averaging_matrix, is_queue, queued_shares, unstable_queue_error

# Largest ratios of service times at which the probability that all units are busy and the mean costs are accurate.
LOSS_RATIO, COST_RATIO = 2, 40
# Ratios of service times, and how many times too high that probability can be at loads of 0.5 and 0.2 per unit.
LOSS_ERRORS = (2, 3, 5, 10, 40), (1.3, 1.4, 1.8, 2.0, 2.0), (1.7, 2.9, 5.8, 9.8, 16)


def approximate_hypercube(city: City, sites: Sites, *, capacity: str = "loss", tol: float = 1e-10) -> Evaluation:
    """Evaluate one deployment by Larson's approximation.

    Parameters
    ----------
    city : City
    sites : array_like of int, shape (p,)
        Site of each unit; a site that occurs twice holds two units.
    capacity : {"loss", "queue"}
        What happens to calls that find every unit busy: lost, or served first come, first served.
    tol : float
        The iteration stops when the ``residual``, the largest change of a utilisation in a step, is at most this.

    Raises
    ------
    UnstableQueueError
        If calls can queue and arrive at least as fast as the fleet can serve them.
    ConvergenceError
        If the iteration does not converge.

    Warns
    -----
    AccuracyWarning
        If the mean service times of the units differ by more than a factor of 2.

    Notes
    -----
    In fleets of more than 30 units, each atom's list of units is cut where a further unit is needed with a probability
    below a tenth of ``tol``. With the tolerance of 1e-8 that `values` and `Objective` use, this changes mean responses
    by at most a few 1e-6 min.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> eo.evaluators.approximate_hypercube(city, [0, 1, 2, 3, 4, 8, 9, 10, 11]).utilizations.shape
    (9,)
    """
    sites, tol, queue = check_sites(city, sites), _validate.positive_number(tol, "tol"), is_queue(capacity)
    rates, service, order = city.arrival_rates / 60, city.service_times, unit_order(city.preference_ranks, sites)
    site_rates = equations.service_rates(sites, rates, service)
    known = sites, rates, service, site_rates, queue, tol
    rho, Q, blocked, wait, steps, moved = equations.solve_utilizations(order, *known)
    if steps == -1:
        raise unstable_queue_error(city, sites)
    if steps == -2:
        failed = f"the approximate hypercube did not converge in {equations.MAX_STEPS} steps"
        raise ConvergenceError(f"{failed}; raise `tol`, or use evaluator='exact' (small fleets) or 'simulation'.")
    _warn_of_unequal_units(city, sites, LOSS_RATIO, capacity)
    shares, average = equations.answer_shares(order, rho, Q), averaging_matrix(city, sites)
    if queue:
        waited = queued_shares(city, sites)[:, None]
        shares = (1 - blocked) * shares + blocked * waited  # any unit may be the next free one
    measures = average @ rho, average @ shares, wait, steps, moved  # which of two twin units comes first is arbitrary
    return Evaluation.of(city, sites, "approximate", capacity, blocked, *measures)


def mean_cost_function(
    city: City, _units: int, costs: FloatArray, queue: bool, *, tol: float
) -> Callable[..., FloatArray]:
    """Return a function from checked deployments, (K, p), to their mean costs per answered call, (K,).

    ``costs``, (N, M), is the cost of a unit at site i answering atom j. The function also takes the options ``workers``
    and ``progress`` of `Objective`.
    """
    tol = _validate.positive_number(tol, "tol")
    minutes = city.service_times @ city.demand_shares
    uneven = minutes.max() / minutes.min() > COST_RATIO  # if not, no deployment needs a check
    rates, service = city.arrival_rates / 60, city.service_times
    site_rates = equations.service_rates(np.arange(city.n_sites), rates, service)
    arguments = city.preference_ranks, rates, service, site_rates, costs, queue, tol

    def values(deployments: IntArray, workers: int | None = None, progress: Progress = False) -> FloatArray:
        if uneven:
            _warn_of_unequal_units(city, deployments, COST_RATIO)
        result = map_rows(lambda rows: equations.mean_costs(rows, *arguments), deployments, workers, progress)
        failed = np.isnan(result)
        if np.count_nonzero(failed):  # faster than `any` for one value
            capacity = "queue" if queue else "loss"
            approximate_hypercube(city, deployments[failed.argmax()], capacity=capacity, tol=tol)  # raises the error
        return result

    return values


def correction_factors(units: int, offered_load: float) -> FloatArray:
    """Return the correction factors (2) of a loss system, Q(p, ρ̄, r) for r = 0, ..., p - 1, shape (p,).

    ``units`` is the fleet size p, and ``offered_load`` that of the whole fleet, λ/μ, in erlangs.
    """
    Q = np.empty(_validate.whole_number(units, "units"))
    equations.fill_correction_factors(_validate.positive_number(offered_load, "offered_load", "erlangs"), False, Q)
    return Q


def _warn_of_unequal_units(city: City, sites: IntArray, most_ratio: int, capacity: str | None = None) -> None:
    """Warn if the mean service times of the units at these sites differ by more than a factor ``most_ratio``.

    With ``capacity`` the warning is about the probability that all units are busy, without it about mean costs.
    """
    minutes = (city.service_times @ city.demand_shares)[np.unique(sites)]
    ratio = minutes.max() / minutes.min()
    if ratio <= most_ratio * (1 + 1e-9):  # a ratio of exactly `most_ratio` must not warn because of rounding
        return
    consequence = "mean costs such as the mean response may be off by more than 3 percent"
    if capacity is not None:
        name = "`queue_probability` and `mean_wait`" if capacity == "queue" else "`loss_probability`"
        at_half, at_fifth = (np.interp(ratio, LOSS_ERRORS[0], times) for times in LOSS_ERRORS[1:])
        consequence = f"{name} can be {at_half:.2g} times too high at an offered load of 0.5 per unit"
        consequence += f", and {at_fifth:.2g} times at 0.2"
        consequence += "; `mean_response` stays within 3 percent" if ratio <= COST_RATIO else ""
    warn(
        f"the mean service times of the units differ by a factor of {ratio:.3g} ({minutes.min():.3g} to "
        f"{minutes.max():.3g} min), but the approximate hypercube is accurate only up to a factor of {most_ratio}: "
        f"{consequence}. Use evaluator='exact' (small fleets) or 'simulation'.",
        AccuracyWarning,
    )
