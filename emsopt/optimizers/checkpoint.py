"""What a checkpoint must agree on for a run to go on from it."""

from hashlib import sha256

from .._running.checkpoint import summary
from ..evaluators.objective import Objective
from .ask_tell import AskTell


def describe(objective, name, method):
    """Return what a checkpoint must agree on: the method, and what is optimised over what."""
    of = _deployments if isinstance(objective, Objective) else _box
    return {"method": name, **(_settings(method) if isinstance(method, AskTell) else {}), **of(objective)}


def _settings(optimizer):
    """Return the plain settings of an optimizer, and what tells the state of its generator from others."""
    plain = {
        name: value
        for name, value in sorted(vars(optimizer).items())
        if name[0] != "_" and (value is None or isinstance(value, (bool, int, float, str)))
    }
    state = repr(optimizer.rng.bit_generator.state)
    return {"settings": plain, "rng": sha256(state.encode()).hexdigest()[:16]}


def _deployments(objective):
    """City, fleet, metric, evaluator and allowed deployments."""
    city, space = objective.city, objective.space
    skipped = ("workers", "progress", *(("rng",) if objective.noisy else ()))
    numbers = [city.arrival_rates, city.travel_times, city.turnout_times, city.service_times]
    return {
        "city": summary(*numbers, *(() if city.preference is None else (city.preference,))),
        "units": space.units,
        "metric": objective.label,
        "costs": summary(objective.costs),
        "evaluator": objective.evaluator,
        "options": {key: repr(value) for key, value in sorted(objective.options.items()) if key not in skipped},
        "room": space.site_capacities.tolist(),
        "pinned": sorted(space.pinned),
    }


def _box(objective):
    """Name of the function, as far as it has one, and the box."""
    f, space = objective.function, objective.space
    return {
        "function": str(getattr(f, "name", getattr(f, "__qualname__", type(f).__qualname__))),
        "sense": objective.sense,
        "noise": float(getattr(f, "noise_sd", 0) or 0) or objective.noisy,
        "bounds": space.bounds.tolist(),
        "integers": list(space.integers),
    }
