"""Checks and aggregation of observations, shared by all regressions."""

import numpy as np

from .. import _validate
from ..errors import InputError


def checked(arms, values, n_arms):
    """Return arms as indices and values as floats, both of shape (k,)."""
    values = _validate.real_array(values, "values", (None,))
    arms = np.asarray(arms)
    if arms.dtype.kind not in "iu" or arms.shape != values.shape:
        msg = f"`arms` must be {len(values)} integer indices, one per value; got {arms.dtype} of shape {arms.shape}."
        raise InputError(msg)
    if arms.min() < 0 or arms.max() >= n_arms:
        raise InputError(f"`arms` must be indices from 0 to {n_arms - 1}; got {arms.min()} to {arms.max()}.")
    return arms, values


def collapsed(arms, values):
    """Return the distinct arms, the number of observations of each, and the sum of its values."""
    unique, place, counts = np.unique(arms, return_inverse=True, return_counts=True)
    return unique, counts, np.bincount(place, weights=values)
