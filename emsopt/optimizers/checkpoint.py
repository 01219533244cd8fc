"""What a checkpoint must agree on for a run to go on from it."""

from .._run_file import digest
from ..objective import Objective


def describe(objective, method):
    """Return what a checkpoint must agree on: the method, and what is optimised over what."""
    of = _deployments if isinstance(objective, Objective) else _box
    return {"method": method, **of(objective)}


def _deployments(objective):
    """City, fleet, metric, evaluator and allowed deployments."""
    city, space = objective.city, objective.space
    skipped = ("workers", "progress", *(("rng",) if objective.noisy else ()))
    times = [city.arrival_rates, city.travel_times, city.turnout_times, city.service_times]
    return {
        "city": digest(*times, city.preferred_order),
        "units": space.units,
        "metric": objective.label,
        "costs": digest(objective.costs),
        "evaluator": objective.evaluator,
        "options": {
            key: repr(value) for key, value in sorted(objective.options.items()) if key not in skipped
        },
        "room": space.room.tolist(),
        "pinned": sorted(space.pinned),
    }


def _box(objective):
    """Name of the function, as far as it has one, and the box."""
    f, space = objective.function, objective.space
    return {
        "function": str(getattr(f, "name", getattr(f, "__qualname__", type(f).__qualname__))),
        "sense": objective.sense,
        "noise": float(getattr(f, "noise", 0) or 0) or objective.noisy,
        "bounds": space.bounds.tolist(),
        "whole": list(space.whole),
    }
