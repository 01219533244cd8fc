"""Widgets for notebooks: move a control and watch deployment, figures and map follow.

``load_panel``         the best deployment as load, fleet, threshold and objective change
``deployment_panel``   a deployment of one's own beside the optimum and the p-median deployment
``optimizer_panel``    a search, stepped by hand, and what it expects
``navigation_panel``   an agent that learns a route, and roads to close on it
``control_panel``      which variables to control, as tolerance and costs change
``boke_panel``         BOKE on one input: its constants, what it knows, and its next point
``dashboard``          all of it for a city of one's choice or one's own, to be served without code

Nothing is computed here: a panel asks the package and shows the answer. What was asked once is remembered. A panel is
an ipywidgets box with all its widgets by name in ``refs``.
"""

from ._dashboard import dashboard
from ._widgets import Panel
from .boke import boke_panel
from .control import control_panel
from .deployment import deployment_panel
from .load import load_panel
from .navigation import navigation_panel
from .optimizer import optimizer_panel

__all__ = [
    "Panel",
    "boke_panel",
    "control_panel",
    "dashboard",
    "deployment_panel",
    "load_panel",
    "navigation_panel",
    "optimizer_panel",
]
