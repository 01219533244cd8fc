"""Describe a run, so that it resumes only from a checkpoint with the same description."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from .._running.checkpoint import summary
from ..evaluators.metrics import is_mean
from ..evaluators.objective import Objective
from .ask_tell import AskTell
from .boxes.box import BoxObjective


def describe(objective: Objective | BoxObjective, name: str, method: str | AskTell[Any]) -> dict[str, Any]:
    """Return what identifies a run: a dict of plain values, which must equal the one stored in a checkpoint.

    It holds the method's ``name``, the settings and generator of ``method`` if this is an optimizer, and the numbers of
    the objective and its search space: see `_settings`, `_deployments` and `_box`.
    """
    of = _deployments(objective) if isinstance(objective, Objective) else _box(objective)
    return {"method": name, **({} if isinstance(method, str) else _settings(method)), **of}


def _settings(optimizer: AskTell[Any]) -> dict[str, Any]:
    """Return an optimizer's public attributes that are plain values, its candidates, and a hash of its generator."""
    plain = {
        name: value
        for name, value in sorted(vars(optimizer).items())
        if name[0] != "_" and (value is None or isinstance(value, (bool, int, float, str)))
    }
    state = repr(optimizer.rng.bit_generator.state)
    points = getattr(optimizer.space, "points", None)  # of `BOKE(candidates=...)`
    only = {} if points is None else {"candidates": summary(points)}
    return {"settings": plain, **only, "rng": sha256(state.encode()).hexdigest()[:16]}


def _deployments(objective: Objective) -> dict[str, Any]:
    """Return the part of the description for deployments: city, fleet, metric, evaluator and allowed deployments.

    Arrays are replaced by summaries. Options that do not change the values, such as ``progress``, are left out.
    """
    city, space = objective.city, objective.space
    skipped = ("workers", "progress", *(("rng",) if objective.noisy else ()))
    numbers = [city.arrival_rates, city.travel_times, city.turnout_times, city.service_times, city.preference]
    numbers += [] if city.response_law is None else [np.asarray(cv) for cv in (city.travel_cv, city.turnout_cv)]
    metric = objective.metric
    parts = [part for part in (metric if isinstance(metric, Mapping) else [metric]) if not is_mean(part)]
    lists = [[np.asarray(one).tolist() for one in part] for part in parts if isinstance(part, tuple)]
    return {
        "city": summary(*(array for array in numbers if array is not None)),
        "units": space.units,
        "metric": objective.label,
        **({"labels": sha256(repr(lists).encode()).hexdigest()[:16]} if lists else {}),
        "costs": summary(objective.costs),
        "evaluator": objective.evaluator,
        "options": {k: repr(v) for k, v in sorted(objective.options.items()) if k not in skipped},
        "capacities": space.site_capacities.tolist(),
        "pinned": sorted(space.pinned),
    }


def _box(objective: BoxObjective) -> dict[str, Any]:
    """Return the part of the description for a box: the function's name (or that of its type), noise, sense and box."""
    f, space = objective.function, objective.space
    return {
        "function": str(getattr(f, "name", getattr(f, "__qualname__", type(f).__qualname__))),
        "sense": objective.sense,
        "noise_sd": float(getattr(f, "noise_sd", 0) or 0),
        "noisy": objective.noisy,
        "bounds": space.bounds.tolist(),
        "integers": list(space.integers),
        "names": list(space.names),
        "logarithmic": [k for k, one in enumerate(space.inputs) if one.log],
        "choices": [list(one.choices) for one in space.inputs],
    }
