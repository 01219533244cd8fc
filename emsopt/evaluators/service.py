"""Service-time distributions: how minutes on a call scatter about their mean.

A `City` says how long a call of atom j ties up a unit from site i *on average*. A law says the rest: the
service time is that mean times a factor drawn once for each call, with mean 1, whoever answers it. Travel is
part of the service time, so the factor scatters travel too; response times are the city's means throughout.
"""

import numpy as np

from .._validate import choice, positive_number, real_array
from ..errors import InputError

LAWS = ("exponential", "lognormal", "gamma", "deterministic")


def service_law(service="exponential", cv=None):
    """Return how to draw factors of mean 1, and the square of their coefficient of variation.

    Parameters
    ----------
    service : {"exponential", "lognormal", "gamma", "deterministic"} or array_like, shape (n,)
        Law of the factor. An array of observed minutes is drawn from with replacement, divided by its mean:
        only its shape counts, the means stay the city's. An Erlang law of k stages is "gamma" with
        cv = 1 / sqrt(k).
    cv : float, optional
        Standard deviation over mean, for "lognormal" and "gamma" only; left out: 1, as for "exponential".

    Returns
    -------
    draw : callable
        ``draw(rng, n)`` gives n factors, shape (n,).
    squared_variation : float

    Raises
    ------
    InputError
        If the law is unknown, ``cv`` is not positive or does not belong to the law, or the observed minutes
        are empty, negative, not finite or all zero.
    """
    if not isinstance(service, str):
        _refuse_cv(cv, "observed minutes")
        minutes = real_array(service, "service", (None,), unit="min", low=0)
        if minutes.max() == 0:
            raise InputError("`service` holds only zeros; observed service times need a mean above 0 min.")
        factors = minutes / minutes.mean()
        return lambda rng, n: factors[rng.integers(len(factors), size=n)], float(factors.var())
    choice(service, "service", LAWS)
    if service == "exponential":
        _refuse_cv(cv, "'exponential'")
        return lambda rng, n: rng.standard_exponential(n), 1.0
    if service == "deterministic":
        _refuse_cv(cv, "'deterministic'")
        return lambda rng, n: np.ones(n), 0.0
    squared = positive_number(1.0 if cv is None else cv, "cv") ** 2
    if service == "gamma":
        return lambda rng, n: rng.standard_gamma(1 / squared, n) * squared, squared
    variance = np.log1p(squared)  # of the logarithm
    return lambda rng, n: np.exp(np.sqrt(variance) * rng.standard_normal(n) - variance / 2), squared


def _refuse_cv(cv, law):
    if cv is not None:
        raise InputError(
            f"`cv` is set by `service` being {law}; got cv={cv!r}. Leave it out, or choose "
            "service='lognormal' or 'gamma'."
        )
