"""Figures of deployments, roads and comparisons of methods, in a common style.

Every function returns ``(fig, ax)``, or ``(fig, axes)`` with an array of one Axes per panel, and takes ``ax``, which is
explained here. By default the figure is created by pyplot: a notebook displays it and a script can close it. An empty
``matplotlib.figure.Figure`` is sized and filled without pyplot, as widgets and servers need. Axes, one per panel, are
drawn on. The functions compute only means or medians and bands; the caller passes evaluations
and tables.

In the docstrings of figures of deployments, "the papers" are the two versions of "Optimizing Server Locations in
Spatial Queues".

Colours are those of the interactive maps (`emsopt.maps`) and distinguishable for colour-blind readers.
"""

from .bandits import cumulative_regret, exploration, routes
from .control import control_bounds, control_run, control_sets, control_study
from .curves import approximation_error, convergence, load_sweep, response_distribution
from .curves import response_histogram as response_histogram
from .maps import deployments
from .optimizers import cut_graph, example_13, trust_region
from .own_city import back_test, drives, hourly_plan, recorded_drives, weekly_profile
from .searches import boke_step, line_panels, regret_curves, search_steps, study_curves

__all__ = ["approximation_error", "back_test", "boke_step", "control_bounds"]
__all__ += ["control_run", "control_sets", "control_study", "convergence", "cumulative_regret"]
__all__ += ["cut_graph", "deployments", "drives", "example_13", "exploration", "hourly_plan"]
__all__ += ["line_panels", "load_sweep", "recorded_drives", "regret_curves", "response_distribution"]
__all__ += ["routes", "search_steps", "study_curves", "trust_region", "weekly_profile"]
