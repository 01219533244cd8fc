"""Widgets for notebooks: move a control and watch deployment, figures and map follow.

``load_panel``         the best deployment as load, fleet, threshold and objective change
``deployment_panel``   your own deployment beside the optimum and the p-median deployment
``optimizer_panel``    a search that you step, and what it expects
``navigation_panel``   an agent that learns a route, and roads to close on it
``control_panel``      which variables to control, as tolerance and costs change
``boke_panel``         BOKE on one input: its constants, what it knows, and its next point
``dashboard``          a city of your choice or your own, its fleet and its callers, to be served without code

Panels compute nothing themselves: they ask the package, show its answers and remember them. Each is a `Panel`, an
ipywidgets box that has its widgets by name in ``refs``.
"""

from ..errors import MissingDependencyError

try:
    import ipywidgets  # noqa: F401
except ImportError as error:
    raise MissingDependencyError("panels need the package ipywidgets: pip install 'emsopt[notebooks]'.") from error

from ._dashboard import dashboard
from ._panel import Panel
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
