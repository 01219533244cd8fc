"""Service-time distributions: how minutes on a call vary about their mean.

A `City` holds the *mean* time that a call of atom j keeps a unit from site i busy. A law adds the variation: the service
time is that mean times a factor with mean 1, drawn once per call, whichever unit answers. As travel is part of the
service time, it varies too; response times are always the city's means.
"""

from collections.abc import Callable

import numpy as np

from .._types import ArrayLike, FloatArray
from .._validate import choice, positive_number, real_array
from ..errors import InputError


def service_law(
    service: str | ArrayLike = "exponential", cv: float | None = None
) -> tuple[Callable[[np.random.Generator, int], FloatArray], float]:
    """Return how to draw factors of mean 1, and the square of their coefficient of variation.

    Parameters
    ----------
    service : {"exponential", "lognormal", "gamma", "deterministic"} or array_like, shape (n,)
        Law of the factor. An array of observed minutes is drawn from with replacement and divided by its mean, so that
        only its shape counts. An Erlang law of k stages is "gamma" with cv = 1 / sqrt(k).
    cv : float, optional
        Standard deviation over mean, for "lognormal" and "gamma" only. Default: 1, as for "exponential".

    Returns
    -------
    draw : callable
        ``draw(rng, n)`` gives n factors, shape (n,).
    squared_variation : float

    Raises
    ------
    InputError
        If the law is unknown, ``cv`` is not positive or does not belong to the law, or the observed minutes are empty,
        negative, not finite or all zero.
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
            raise InputError("`service` holds only zeros; observed service times need a mean above 0 min.")
        factors = minutes / minutes.mean()
        return lambda rng, n: factors[rng.integers(len(factors), size=n)], float(factors.var())
    if service == "exponential":
        return lambda rng, n: rng.standard_exponential(n), 1.0
    if service == "deterministic":
        return lambda rng, n: np.ones(n), 0.0
    squared = positive_number(1.0 if cv is None else cv, "cv") ** 2
    if service == "gamma":
        return lambda rng, n: rng.standard_gamma(1 / squared, n) * squared, squared
    variance = np.log1p(squared)  # of the logarithm
    return lambda rng, n: np.exp(np.sqrt(variance) * rng.standard_normal(n) - variance / 2), squared
