"""Service-time distributions: how service times vary about their means.

A `City` holds the *mean* time that a call of atom j keeps a unit from site i busy. A service law adds the variation:
the service time is that mean times a random factor with mean 1, drawn once per call, whichever unit answers. Travel is
part of the service time and varies in it. This variation does not enter response times: how they vary is given by
`City.travel_cv`, and a simulation draws both independently.
"""

from collections.abc import Callable

import numpy as np

from .._types import ArrayLike, FloatArray
from .._validate import choice, positive_number, real_array
from ..errors import InputError


def service_law(
    service: str | ArrayLike = "exponential", cv: float | None = None
) -> tuple[Callable[[np.random.Generator, int], FloatArray], float]:
    """Return a function that draws random factors for service times, and how much these factors vary.

    A service time is the mean service time of its site and atom times one factor. The factors have mean 1, so mean
    service times are kept.

    Parameters
    ----------
    service : {"exponential", "lognormal", "gamma", "deterministic"} or array_like, shape (n,)
        Distribution of the factor. If an array of observed minutes is given, they are drawn with replacement and
        divided by their mean, so that only the shape of their distribution matters. An Erlang distribution of k stages
        is "gamma" with cv = 1 / sqrt(k).
    cv : float, optional
        Coefficient of variation, for "lognormal" and "gamma" only. Default: 1, as for "exponential".

    Returns
    -------
    draw : callable
        ``draw(rng, n)`` gives n factors, shape (n,).
    squared_variation : float
        Square of the coefficient of variation of the factors.

    Raises
    ------
    InputError
        If ``service`` is unknown, ``cv`` is not positive or is not an option of this ``service``, or the observed
        minutes are empty, negative, not finite or all zero.
    """
    if isinstance(service, str):
        choice(service, "service", ("exponential", "lognormal", "gamma", "deterministic"))
    if cv is not None and not (isinstance(service, str) and service in ("lognormal", "gamma")):
        raise InputError(
            f"`cv` is fixed by this `service`; got cv={cv!r}. Leave it out, or choose service='lognormal' or 'gamma'."
        )
    if not isinstance(service, str):
        minutes = real_array(service, "service", (None,), unit="min", low=0)
        if minutes.max() == 0:
            raise InputError("`service` must hold observed minutes with a mean above 0; all are zero.")
        factors = minutes / minutes.mean()
        return lambda rng, n: factors[rng.integers(len(factors), size=n)], float(factors.var())
    if service == "exponential":
        return lambda rng, n: rng.standard_exponential(n), 1.0
    if service == "deterministic":
        return lambda rng, n: np.ones(n), 0.0
    squared = positive_number(1.0 if cv is None else cv, "cv") ** 2
    if service == "gamma":
        return lambda rng, n: rng.standard_gamma(1 / squared, n) * squared, squared
    variance = np.log1p(squared)  # variance of the logarithm
    return lambda rng, n: np.exp(np.sqrt(variance) * rng.standard_normal(n) - variance / 2), squared
