"""Every panel under random hands: no exception reaches the user, nothing shown is a traceback, a NaN or a foreign script.

A sequence is one to four changes of any controls, from wherever the sequence before has led. The plain suite takes a
few; ``EMSOPT_FUZZ=500 python -m pytest tests/panels/test_panels_at_random.py`` takes as many of every panel.
"""

import os
import re

import ipywidgets as widgets
import numpy as np
import pytest
from uploads import chosen

import emsopt as eo
from emsopt import panels
from emsopt.maps.live import LiveMap
from emsopt.panels._uploads import FileChooser
from emsopt.roads import grid_roads

SEQUENCES = int(os.environ.get("EMSOPT_FUZZ", "2"))
NASTY = "<script>1</script>"
TEXTS = ("", " ", NASTY, "a$b$c", "=1+1", "r1c1-r1c2", "nowhere, ,", "\u202e" + "x" * 3000, "\x00")
UPLOADS = (b"", b"\xff\xfe\x00", b"time,lon,lat\n2025-01-01,-30,45\n", b"name,lon,lat\ns,-30,45\n", NASTY.encode())
NAMES = ("calls.csv", "stations.csv", "city.json", "atoms.csv", "sites.csv", f"{NASTY}.csv", "../calls.csv")


def grid(units):
    """A city whose names are no script, although they look like one."""
    names = [f"{NASTY} {k}" for k in range(6)]
    return eo.datasets.grid_city(6, units, 0.5, rng=0).replace(name=NASTY, notes=NASTY, site_names=names)


def named_problem():
    values = lambda u: u.sum(axis=1)
    f = eo.problems.Problem(NASTY, values, [(0, 1)] * 2, "max", 2.0, [1, 1], variables=(NASTY, "c"))
    return eo.problems.ControlProblem(f, [[NASTY], [NASTY, "c"]], [0.5, 1.0], eo.problems.Uniform())


PANELS = {
    "deployment": lambda: panels.deployment_panel(grid(3), 3),
    "load": lambda: panels.load_panel(grid(3), 3),
    "optimizer": lambda: panels.optimizer_panel(eo.Objective(grid(3), 3, "approximate"), rng=0),
    "optimizer, shared sites": lambda: panels.optimizer_panel(eo.Objective(grid(3), eo.DeploymentSpace(grid(3), 3, colocation=True), "approximate", ("late", 8.0)), rng=0),
    "navigation": lambda: panels.navigation_panel(grid_roads(4, 4, jitter=0.2, rng=0), "r0c0-r0c1", "r3c2-r3c3", horizon=10, rng=0),
    "control": lambda: panels.control_panel(eo.problems.hill_control(), budget=4, rng=0),
    "control, named": lambda: panels.control_panel(named_problem(), budget=1.5, rng=0),
    "boke": lambda: panels.boke_panel(rng=0),
    "claims": lambda: panels.claims_panel(),
    "dashboard": lambda: panels.dashboard(),
}  # fmt: skip


@pytest.fixture
def quick(monkeypatch):
    """Leave out what takes long and no control changes: drawing, and plays by the hundred."""
    monkeypatch.setattr("emsopt.panels._widgets.image", lambda *_, **__: "<img alt=''>")
    monkeypatch.setattr("emsopt.panels.control.MOST_PLAYS", 12)


def parts(panel):
    """Return every widget that takes or shows something, by name, as the panel now is."""
    found = {}
    for name, part in panel.refs.items():
        several = part if isinstance(part, (list, tuple)) else [part]
        found |= {f"{name} {k}": w for k, w in enumerate(several) if isinstance(w, widgets.Widget)}
    return found


def inputs(panel):
    """Return the widgets that a user can change."""
    shown = (widgets.HTML, widgets.FloatProgress, widgets.IntProgress)
    return {
        name: widget
        for name, widget in parts(panel).items()
        if not isinstance(widget, shown) and not getattr(widget, "disabled", False)
        if not isinstance(widget, LiveMap) or (widget.edit and widget.page is not None)
    }


def number(rng, widget):
    """Return a number in the widget's range, at its ends, or beyond them, where the browser would not go."""
    if isinstance(widget, widgets.FloatLogSlider):
        low, high = widget.base**widget.min, widget.base**widget.max
    else:
        low, high = widget.min, widget.max
    value = [low, high, low - 5, high * 3, rng.uniform(low, high), rng.uniform(low, high)][rng.integers(6)]
    return int(value) if "Int" in type(widget).__name__ else float(value)


def files(rng):
    names = rng.choice(NAMES, rng.integers(1, 4)).tolist()
    return chosen((name, UPLOADS[rng.integers(len(UPLOADS))]) for name in names)


def change(rng, widget):
    """Do to a widget what a user could, and a little more."""
    if isinstance(widget, widgets.Button):
        widget.click()
    elif isinstance(widget, LiveMap):
        widget.press(int(rng.integers(len(widget.scene["city"]["places"]))))
    elif isinstance(widget, FileChooser):
        widget.value = files(rng)
    elif isinstance(widget, widgets.Checkbox):
        widget.value = not widget.value
    elif isinstance(widget, widgets.SelectMultiple):
        some = rng.random(len(widget.options)) < rng.choice([0.0, 0.15, 1.0], p=[0.3, 0.65, 0.05])
        widget.index = tuple(np.flatnonzero(some).tolist())
    elif isinstance(widget, (widgets.Dropdown, widgets.ToggleButtons)):
        widget.index = int(rng.integers(len(widget.options)))
    elif isinstance(widget, widgets.Text):
        widget.value = TEXTS[rng.integers(len(TEXTS))]
    else:
        widget.value = number(rng, widget)


def check(panel):
    """Refuse what nobody should read."""
    for name, widget in parts(panel).items():
        if isinstance(widget, widgets.HTML):
            text = re.sub(r"<iframe.*?</iframe>|<img[^>]*>|href='[^']*'", "", widget.value, flags=re.DOTALL)
            assert NASTY not in text, name
            assert not re.search(r"Traceback|\bnan\b|\binf\b|Error\b", re.sub("<[^>]*>", " ", text)), (name, text)


@pytest.mark.parametrize("name", PANELS)
def test_inputs_are_labelled_and_no_sequence_of_changes_ends_in_an_exception(name, quick):
    rng, panel = np.random.default_rng(5), PANELS[name]()
    assert NASTY not in getattr(panel.children[0], "value", "")
    for key, widget in inputs(panel).items():
        assert isinstance(widget, (LiveMap, widgets.ToggleButtons)) or (widget.description and widget.tooltip), key
    if isinstance(panel.refs.get("run"), widgets.Button):
        panel.refs["run"].click()
    check(panel)
    for _ in range(SEQUENCES):
        done = []
        for _ in range(int(rng.integers(1, 5))):
            found = inputs(panel)
            kind = lambda key: key.rsplit(" ", 1)[0]  # one of a list counts as the list, so that others are moved too
            what = rng.choice(sorted({kind(key) for key in found})).item()
            which = rng.choice([key for key in found if kind(key) == what]).item()
            done.append(which)
            change(rng, found[which])
            if what == "search":  # of the dashboard: half of the searches are cancelled
                if rng.random() < 0.5:
                    panel.refs["cancel"].click()
                panel.refs["wait"]()
        check(panel)
        said = [panel.refs[key].value for key in ("message", "answer", "figures", "said", "sets") if key in panel.refs]
        assert any(said), done


@pytest.mark.parametrize(
    ("name", "fails", "action", "told"),
    [
        ("load", "deployment._charts.figures_table", "load", "message"),
        ("optimizer", "optimizer.Trace.step", "step", "message"),
        ("dashboard", "_uploads._unpack_uploads", "read", "message"),
        ("dashboard", "_tabs.find_best", "search", "answer"),
    ],
)
def test_an_unexpected_error_is_said_and_logged(name, fails, action, told, quick, monkeypatch, caplog):
    def fail(*_, **__):
        raise ZeroDivisionError("<the fault>")

    panel = PANELS[name]()
    monkeypatch.setattr(f"emsopt.panels.{fails}", fail)
    if action == "load":
        panel.refs[action].value = 2.0
    else:
        panel.refs[action].click()
    if action == "search":
        panel.refs["wait"]()
    message = panel.refs[told].value
    assert "Something unexpected went wrong (ZeroDivisionError). Try another value" in message
    assert "the fault" not in message
    (record,) = [record for record in caplog.records if record.name == "emsopt"]
    assert "<the fault>" in str(record.exc_info[1])
