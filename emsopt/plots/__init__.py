"""Figures of deployments, roads and comparisons of methods, in a common style.

Every function returns ``(fig, ax)``, or ``(fig, axes)`` with an array of one Axes per panel, and takes ``ax``, which is
explained here. By default the figure is created by pyplot: a notebook displays it and a script can close it. An empty
``matplotlib.figure.Figure`` is sized and filled without pyplot, as widgets and servers need. Axes, one per panel, are
drawn on. The functions compute only means or medians and bands; the caller passes evaluations and tables.

Colours are those of the interactive maps (`emsopt.maps`) and distinguishable for colour-blind readers.
"""

from .bandits import cumulative_regret, exploration, routes
from .boke import boke_step
from .control import control_run, control_sets
from .curves import convergence, load_sweep, regret_curves, response_distribution
from .curves import response_histogram as response_histogram
from .maps import deployments
from .own_city import back_test, drives, hourly_plan, recorded_drives, weekly_profile

__all__ = ["back_test", "boke_step", "control_run", "control_sets", "convergence", "cumulative_regret"]
__all__ += ["deployments", "drives", "exploration", "hourly_plan", "load_sweep", "recorded_drives"]
__all__ += ["regret_curves", "response_distribution", "routes", "weekly_profile"]
