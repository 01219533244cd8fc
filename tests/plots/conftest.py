"""Figures are drawn without a display, most of them of one town."""

import matplotlib as mpl
from smallville import both, doubled  # noqa: F401

mpl.use("Agg")
