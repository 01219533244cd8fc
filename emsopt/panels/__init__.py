"""Interactive widgets for notebooks: when a control changes, deployment, figures and map are updated.

``load_panel``         the best deployment as load, fleet, threshold and objective change
``deployment_panel``   your own deployment beside the optimum and the p-median deployment
``optimizer_panel``    a search that you run step by step, and its predictions
``navigation_panel``   agents that learn a route, and roads to close on it
``control_panel``      which variables to control, as tolerance and costs change
``boke_panel``         BOKE for one or two inputs: its constants, its model and its next point
``claims_panel``       what the papers claim, with our verdicts and links to the evidence
``dashboard``          a page for users who do not program: choose a city or upload your own, and place its units

Each is a `Panel`, an ipywidgets box. Its ``refs`` has the inputs and outputs by name.
"""

from ..errors import MissingDependencyError

try:
    import ipywidgets  # noqa: F401
except ImportError as error:
    raise MissingDependencyError("panels need the package ipywidgets: pip install 'emsopt[notebooks]'.") from error

from ._dashboard import dashboard
from ._panel import Panel as Panel
from .boke import boke_panel
from .claims import claims_panel
from .control import control_panel
from .deployment import deployment_panel, load_panel
from .navigation import navigation_panel
from .optimizer import optimizer_panel

__all__ = ["boke_panel", "claims_panel", "control_panel", "dashboard", "deployment_panel", "load_panel"]
__all__ += ["navigation_panel", "optimizer_panel"]
