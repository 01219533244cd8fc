"""Files to take along, as links that hold them: scenarios, map and picture."""

from base64 import b64encode
from html import escape
from io import BytesIO

from ..maps.deployments import deployment_map
from ..plots import deployments
from ._widgets import DRAWING


def links(city, evaluations, scenarios):
    """Return links that save a table of scenarios, a map and a picture of some deployments, as HTML.

    Parameters
    ----------
    city : City
    evaluations : dict of str to Evaluation
    scenarios : DataFrame
        Empty: no link.
    """
    files = []
    if len(scenarios):
        text = scenarios.to_csv(index=False, lineterminator="\n")
        files.append(("scenarios.csv", "text/csv", text.encode("utf-8-sig")))
    if city.atom_locations is not None and city.site_locations is not None:
        files.append(("map.html", "text/html", deployment_map(city, evaluations).html.encode()))
        files.append(("deployments.png", "image/png", _picture(city, evaluations)))
    if not files:
        return "<p>Nothing to save: the table is empty, and the city has no coordinates.</p>"
    return "<p>Save " + ", ".join(_link(*file) for file in files) + "</p>"


def _picture(city, evaluations):
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with DRAWING, rc_context({"text.parse_math": False}):
        figure, _ = deployments(city, evaluations, Figure())
        png = BytesIO()
        figure.savefig(png, format="png", dpi=110)
    return png.getvalue()


def _link(name, kind, content):
    source = f"data:{kind};base64,{b64encode(content).decode()}"
    size = f"{len(content) / 1024:,.0f} kB"
    style = "color:#0b5394;text-decoration:underline"
    return f"<a style='{style}' download='{escape(name)}' href='{source}'>{escape(name)}</a> ({size})"
