"""Panels draw their pictures only for tests that look at them: most of a test's time would go there."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("ipywidgets") else ["test_*.py"]


@pytest.fixture(scope="package", autouse=True)
def undrawn():
    """Pictures without content, and the function that draws them."""
    from emsopt.panels import _widgets as widgets

    draw = widgets.png
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(widgets, "png", lambda *_, **__: b"")
        yield draw


@pytest.fixture
def drawn(undrawn, monkeypatch):
    """Draw as users see it."""
    monkeypatch.setattr("emsopt.panels._widgets.png", undrawn)
