"""A deployment's value as a function to minimise, counting its evaluations."""

from functools import cached_property

import numpy as np

from .. import _validate
from ..city.deployment import DeploymentSpace, check_deployments, check_sites
from ..errors import InputError
from .by_name import check_evaluator, evaluate, prepare, split_options
from .metrics import metric_costs, metric_label


class Objective:
    """Map a deployment to the metric that an evaluator gives it; smaller is better.

    Parameters
    ----------
    city : City
    units : int or DeploymentSpace
        Fleet size p, or the deployments that a search may propose. Any other of the same size can still be evaluated.
    evaluator : {"exact", "approximate", "simulation"}, optional
        Left out: exact up to 12 units, else approximate.
    metric : str, tuple or mapping
        "mean_response" (min), ("late", minutes), or a weighted mix: see `emsopt.evaluators.metrics`.
    **options
        Passed to the evaluator, such as ``capacity``; for a simulation ``calls`` and ``rng``.

    Attributes
    ----------
    space : DeploymentSpace
        The allowed deployments.
    evaluations : int
        Deployments evaluated so far.
    noisy : bool
        Whether the same deployment can get different values: a simulation without a fixed integer ``rng``.
    sense : str
        "min": every metric is better when smaller.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.load_st_paul(), 9, metric=("late", 8.0))
    >>> 0 < objective([0, 1, 2, 3, 4, 8, 9, 10, 11]) < 1
    True
    >>> objective.evaluations
    1
    """

    sense = "min"

    def __init__(
        self,
        city,
        units,
        evaluator=None,
        metric="mean_response",
        **options,
    ):
        self.city = city
        self.space = DeploymentSpace.of(city, units)
        self.units = self.space.units
        self.evaluator = check_evaluator(evaluator, self.units)
        _validate.choice(options.get("capacity", "loss"), "capacity", ("loss", "queue"))
        self.metric = metric
        self.costs = metric_costs(city, metric)
        self.label = metric_label(metric)
        split_options(self.evaluator, options)
        self.options = options
        self.noisy = self.evaluator == "simulation" and not isinstance(options.get("rng"), (int, np.integer))
        self.evaluations = 0

    def __call__(self, sites):
        """Return the value of one deployment, site indices of shape (p,)."""
        return float(self._counted(check_sites(self.city, sites)[None])[0])

    def values(self, deployments):
        """Return the values of many deployments, shape (K, p), evaluated in parallel; shape (K,)."""
        return self._counted(check_deployments(self.city, deployments))

    def _counted(self, deployments):
        """Return the values of checked deployments."""
        if deployments.shape[1] != self.units:
            raise InputError(f"a deployment must hold {self.units} site indices; got {deployments.shape[1]}.")
        result = self.ready(deployments)
        self.evaluations += len(deployments)
        return result

    @cached_property
    def ready(self):
        """Function from checked deployments, shape (K, p), to values, not counted; options are looked up here, once."""
        return prepare(self.city, self.units, self.costs, self.evaluator, self.options)

    def __getstate__(self):
        """Leave `ready` out of pickles and copies: a copy may be given other options."""
        return {name: value for name, value in self.__dict__.items() if name != "ready"}

    def evaluation(self, sites):
        """Return the full `Evaluation` of one deployment (not counted)."""
        return evaluate(self.city, sites, self.evaluator, **self.options)

    def __repr__(self):
        return f"<Objective: {self.label} of {self.units} units in {self.city.name!r}, {self.evaluator}>"
