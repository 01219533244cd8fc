"""What the panels are made of: a box with named parts, tables of figures, and a map that redraws itself.

There is no Output widget: figures and maps are the values of HTML widgets, which do not flicker and which a test can
read without a browser.
"""

import logging
from base64 import b64encode
from html import escape
from io import BytesIO
from threading import Lock
from uuid import uuid4

import numpy as np

from .. import _validate
from ..errors import EmsoptError, MissingDependencyError
from ..evaluators import one_median
from ..maps._shading import stations
from ..maps.deployments import deployment_map
from ..plots import STYLE

try:
    import ipywidgets as widgets
    from traitlets.log import get_logger
except ImportError as error:
    msg = 'panels need the package ipywidgets; install it with: pip install "emsopt[notebooks]".'
    raise MissingDependencyError(msg) from error

LABEL = {"description_width": "9.5em"}
WIDE = "min(32em, 98%)"
# Matplotlib's settings belong to the whole process, and what a search found is drawn by its thread.
DRAWING = Lock()
LARGEST_SEED = 2**53 - 1  # a browser's largest whole number
LONGEST_MESSAGE = 1000  # characters: what is wrong with a file may quote a line of it, however long
TABLE_STYLE = """<style>
.emsopt-figures {border-collapse: collapse; line-height: 1.5}
.emsopt-figures th, .emsopt-figures td {padding: 0.15em 0.9em; text-align: right; border-bottom: 1px solid #8886;
  white-space: nowrap; font-variant-numeric: tabular-nums}
.emsopt-figures th[scope=row] {text-align: left; font-weight: normal}
</style>"""


class Panel(widgets.VBox):
    """A column of widgets.

    Attributes
    ----------
    refs : dict of str to Widget
        The widgets that take or show something, by name.
    """

    def __init__(self, children, refs):
        super().__init__(children)
        self.refs = refs


def control(kind, label, tip, **options):
    """Return an input with a label and a tooltip that answers when let go."""
    options.setdefault("layout", widgets.Layout(width=WIDE))
    if "Slider" in kind.__name__:
        options["continuous_update"] = False
    return kind(description=label, tooltip=tip, style=LABEL, **options)


def seed_of(rng):
    """Return a seed that `seed_input` can show."""
    if _validate.is_real(rng):
        return _validate.whole_number(rng, "rng", low=0, high=LARGEST_SEED)
    return int(_validate.generator(rng).integers(2**31))


def seed_input(seed, tip):
    """Return the input for a seed."""
    narrow = widgets.Layout(width="19em")
    return control(widgets.BoundedIntText, "Seed", tip, value=seed, min=0, max=LARGEST_SEED, layout=narrow)


def threshold_slider():
    """Return the input for the minutes from which a response is late."""
    return control(
        widgets.FloatSlider,
        "Late from (min)",
        "A response of this many minutes or more is late",
        value=8.0,
        min=3.0,
        max=20.0,
        step=0.5,
        readout_format=".1f",
    )


def heading(text, explanation):
    """Return a title and what the panel does."""
    return widgets.HTML(f"<h3 style='margin:0.2em 0'>{escape(text)}</h3>{lines(explanation)}")


class Message(widgets.HTML):
    """A line that says what is wrong or worth knowing; screen readers announce it.

    Attributes
    ----------
    times : int
        How often it was told what to say.
    """

    times = 0

    def say(self, text=""):
        """Show ``text``; nothing if it is empty."""
        style = "padding:0.3em 0.7em;border-left:4px solid #b35900;background:#fff4e5;color:#222;max-width:56em"
        if len(text) > LONGEST_MESSAGE:
            text = text[:LONGEST_MESSAGE] + " …"
        self.times += 1
        self.value = f"<div role='status' style='{style}'>{escape(text)}</div>" if text else ""


def complaint(error):
    """Return what to say of an error. One that the package does not raise on purpose is logged with its traceback."""
    if isinstance(error, EmsoptError):
        text = str(error)
        return text[:1].upper() + text[1:]
    # Where a kernel runs, "emsopt" logs to the notebook and the kernel's own logger to the log of the server.
    for log in {logging.getLogger("emsopt"), get_logger()}:
        log.error("A panel met an unexpected error.", exc_info=error)
    return (
        f"Something unexpected went wrong ({type(error).__name__}). Try another value or another file, or start anew: reload "
        "the page, or run the notebook's cell again. The details are in the log of the server."
    )


def guarded(message, action, otherwise=lambda: None):
    """Return ``action`` as a widget's callback, which may return a remark.

    Whatever error ends it is said in ``message``, and ``otherwise`` takes away what no longer holds. Without a remark
    the message is emptied, unless another callback within this one has used it.
    """

    def callback(_=None):
        before = message.times
        try:
            remark = action() or ""
        except Exception as error:  # noqa: BLE001 - whatever it is, it is said
            remark = complaint(error)
            guarded(message, otherwise)()
        if remark or message.times == before:
            message.say(remark)

    return callback


def close(widget):
    """Let go of a widget and of all within it: a kernel keeps what is not closed as long as it runs."""
    for child in getattr(widget, "children", ()):
        close(child)
    for part in (getattr(widget, "style", None), widget.layout, widget):
        if part is not None:
            part.close()


def table(caption, columns, rows):
    """Return an HTML table; ``rows`` maps a row's title to its cells, as texts."""
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr><th scope='row'>{escape(title)}</th>{''.join(f'<td>{escape(text)}</td>' for text in cells)}</tr>"
        for title, cells in rows.items()
    )
    return (
        f"{TABLE_STYLE}{lines(caption)}<div style='overflow-x:auto'>"
        f"<table class='emsopt-figures' aria-label='{escape(caption)}'><tr><td></td>{head}</tr>{body}</table></div>"
    )


def lines(*texts):
    """Return texts as HTML paragraphs."""
    return "".join(f"<p style='margin:0.2em 0;line-height:1.4;max-width:56em'>{escape(text)}</p>" for text in texts)


def picture(draw, title, alt, size=(5.6, 3.5), box=(0.16, 0.17, 0.8, 0.78)):
    """Return a figure as HTML; ``draw`` gets the axes, which fill ``box`` (left, bottom, width, height: shares).

    Margins are fixed: fitting them doubles the time it takes. A dollar in a name is a dollar, and begins no formula.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with DRAWING, rc_context(STYLE | {"text.parse_math": False}):
        figure = Figure(figsize=size, layout="none")
        axes = figure.add_axes(box)
        draw(axes)
        png = BytesIO()
        figure.savefig(png, format="png", dpi=85)
    source = b64encode(png.getvalue()).decode()
    image = f"<img src='data:image/png;base64,{source}' alt='{escape(alt)}' style='max-width:100%'>"
    return f"<figure style='margin:0.4em 0'>{caption(title)}{image}</figure>"


def performance(evaluations, threshold):
    """Return rows of figures of some evaluations, for `table`: all but the mean response."""
    return {
        f"responses of {threshold:g} min or more": [f"{e.late_fraction(threshold):.2%}" for e in evaluations],
        "90th percentile (min)": [f"{e.percentile_90:.2f}" for e in evaluations],
        "calls lost to the fleet": [f"{e.loss_probability:.2%}" for e in evaluations],
        "units busy, on average": [f"{e.utilizations.mean():.1%}" for e in evaluations],
        "busiest unit": [f"{e.utilizations.max():.1%}" for e in evaluations],
    }


def caption(text):
    """Return what a picture or table shows, as HTML."""
    return f"<figcaption style='line-height:1.3;max-width:34em'>{escape(text)}</figcaption>"


def shading_limits(city):
    """Return a range for the map that fits every load: from the quickest response to one central site for all, min."""
    center = city.response_times[one_median(city).sites[0]]
    return float(np.floor(city.response_times.min())), float(np.ceil(np.percentile(center, 90)))


def places(city, sites):
    """Say in words where units wait: "Station 4, Station 9 (unit 1) × 2"."""
    counts = {}
    for site in sites:
        counts[site] = counts.get(site, 0) + 1
    return ", ".join(f"{city.site_names[site]} × {n}" if n > 1 else city.site_names[site] for site, n in counts.items())


class MapView:
    """A map in one HTML widget, redrawn by messages that go through another: zoom and layers stay as they are.

    Cities without coordinates get a sentence instead.

    Parameters
    ----------
    city : City
    height : int
        Pixels.
    edit : str, optional
        Name of the evaluation whose stations can be clicked.
    clicked : callable, optional
        Called with the sites of the place that was clicked, a list of indices.
    """

    def __init__(self, city, height=480, edit=None, clicked=None):
        self.limits, self.height, self.map = shading_limits(city), height, None
        self.key, self.edit = uuid4().hex, edit
        self.places = [] if clicked is None or city.site_locations is None else self._buttons(city, clicked)
        self.hidden = widgets.Box(self.places, layout={"display": "none"})
        self.shown = widgets.HTML(layout=widgets.Layout(width="calc(100% - 4px)"))  # the margin is 2 px
        self.feed = widgets.HTML(layout=widgets.Layout(height="0", margin="0"))

    def show(self, city, evaluations):
        """Show these evaluations, by name: the same names every time."""
        if city.atom_locations is None or city.site_locations is None:
            self.shown.value = "<p>This city has no coordinates, so there is no map.</p>"
        elif self.map is None:
            self.map = deployment_map(
                city, evaluations, limits=self.limits, height=self.height, key=self.key, edit=self.edit
            )
            self.shown.value = self.map._repr_html_()
        else:
            self.feed.value = self.map.update(evaluations)
        self.shown.layout.visibility = "visible"

    def _buttons(self, city, clicked):
        """Return a hidden button for each place of the map, for the page to press."""
        which, places = stations(city)
        buttons = []
        for k in range(len(places)):
            sites = np.flatnonzero(which == k).tolist()
            button = widgets.Button()
            button.add_class(f"emsopt-{self.key}-place-{k}")
            button.on_click(lambda _, sites=sites: clicked(sites))
            buttons.append(button)
        return buttons

    def hide(self):
        """Hide what no longer holds."""
        self.shown.layout.visibility = "hidden"
