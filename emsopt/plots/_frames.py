"""Columns of frames that figures are drawn from, in words."""


def words(name):
    """Return a column's name as a reader would say it."""
    return str(name).replace("p_median", "p-median").replace("_", " ").replace("utiliz", "utilis")
