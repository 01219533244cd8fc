"""Labels for the columns of frames."""


def words(name):
    """Return a column's name as a readable label."""
    return str(name).replace("p_median", "p-median").replace("_", " ").replace("utiliz", "utilis")
