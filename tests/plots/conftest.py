"""Figures are drawn without a display."""

import matplotlib as mpl

mpl.use("Agg")
