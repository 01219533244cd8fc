"""`Objective`, the function of a deployment that is minimised; it counts its evaluations."""

from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._running.parallel import map_rows
from ..city.city import City
from ..city.deployment_space import DeploymentSpace, check_deployments, check_sites
from ..errors import InputError
from ..errors._types import ArrayLike, FloatArray, IntArray, Sites
from .by_name import check_evaluator, evaluate, mean_cost_function, split_options
from .evaluation import Evaluation, is_queue
from .metrics import Metric, is_mean, metric_costs, metric_function, metric_label


class Objective:
    """Function from a deployment to its value: a metric computed by an evaluator; smaller is better.

    Parameters
    ----------
    city : City
    units : int or DeploymentSpace
        Fleet size p, with at most one unit per site; or the deployments that a search may propose. Other deployments
        of p units can still be evaluated.
    evaluator : {"exact", "approximate", "simulation"}, optional
        Default: exact up to 12 units, else approximate.
    metric : str, tuple, callable or mapping
        "mean_response" (min), ("late", minutes), ("percentile", q), any function of an `Evaluation`, or a weighted mix;
        see `emsopt.evaluators.metrics`.
    **options
        Passed to the evaluator, such as ``capacity``; for a simulation ``calls`` and ``rng``. For many deployments also
        ``workers``, the number of threads (default: the number of cores), and ``progress``: True shows a bar, a
        function is called with (deployments done, deployments in all).

    Attributes
    ----------
    space : DeploymentSpace
        The allowed deployments.
    evaluations : int
        Number of deployments evaluated so far.
    noisy : bool
        Whether the same deployment can get different values: a simulation without a fixed integer ``rng``.
    sense : str
        Always "min", because a smaller value of any metric is better.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.load_st_paul(), 9, metric=("late", 8.0))
    >>> 0 < objective([0, 1, 2, 3, 4, 8, 9, 10, 11]) < 1, objective.evaluations
    (True, 1)
    """

    sense = "min"

    def __init__(
        self,
        city: City,
        units: int | DeploymentSpace,
        evaluator: str | None = None,
        metric: Metric = "mean_response",
        **options: Any,
    ) -> None:
        self.city = city
        self.space = DeploymentSpace.of(city, units)
        self.units = self.space.units
        self.evaluator = check_evaluator(evaluator, self.units)
        self.metric = metric
        if is_mean(metric):
            self.costs = metric_costs(city, metric)
        else:
            metric_function(city, metric)  # raises immediately if the metric is invalid
            self.costs = city.response_times  # methods that need a cost matrix then search by response times
        self.label = metric_label(metric)
        split_options(self.evaluator, options)  # raises now, not in the first evaluation, if an option is unknown
        is_queue(options.get("capacity", "loss"))
        self.options = options
        # A Generator or None gives other calls each time; a whole number gives the same calls to every deployment.
        self.noisy = self.evaluator == "simulation" and not isinstance(options.get("rng"), (int, np.integer))
        self.evaluations = 0

    def __call__(self, sites: Sites) -> float:
        """Return the value of one deployment, given as site indices or names, shape (p,)."""
        return float(self._count_values(check_sites(self.city, sites)[None])[0])

    def values(self, deployments: ArrayLike) -> FloatArray:
        """Evaluate many deployments, shape (K, p), in parallel and count them; return their values, shape (K,)."""
        return self._count_values(check_deployments(self.city, deployments))

    def _count_values(self, deployments: IntArray) -> FloatArray:
        """Return the values of checked deployments and count their evaluations; raise if their size is not p."""
        if deployments.shape[1] != self.units:
            raise InputError(f"a deployment must hold {self.units} site indices; got {deployments.shape[1]}.")
        result = self.value_function(deployments)
        self.evaluations += len(deployments)  # only now, so that an evaluation that fails is not counted
        return result

    @cached_property
    def value_function(self) -> Callable[..., FloatArray]:
        """Function from checked deployments, shape (K, p), to their values, shape (K,), which does not count them."""
        if is_mean(self.metric):
            return mean_cost_function(self.city, self.units, self.costs, self.evaluator, self.options)
        value = metric_function(self.city, self.metric)
        _, _, threads = split_options(self.evaluator, self.options)
        return partial(map_rows, lambda rows: [value(self.evaluation(sites)) for sites in rows], **threads)

    def __getstate__(self) -> dict[str, Any]:
        # Leave out the cached `value_function`, which cannot be pickled; a copy may have other options (`with_seed`).
        return {name: value for name, value in vars(self).items() if name != "value_function"}

    def with_seed(self, seed: int) -> "Objective":
        """Return a copy that simulates every deployment with this random seed; other evaluators ignore it."""
        twin = copy(self)
        if self.evaluator == "simulation":
            twin.options = self.options | {"rng": seed}  # a new dict, as the copy shares that of the original
        return twin

    def evaluation(self, sites: Sites) -> Evaluation:
        """Return the full `Evaluation` of one deployment, without counting it in ``evaluations``."""
        return evaluate(self.city, sites, self.evaluator, **self.options)

    def __repr__(self) -> str:
        return f"<Objective: {self.label} of {self.units} units in {self.city.name!r}, {self.evaluator}>"
