"""Panels draw their pictures only for tests that look at them: most of a test's time would go there."""

import pytest


@pytest.fixture(scope="package", autouse=True)
def undrawn():
    """Pictures without content, and the function that draws them."""
    widgets = pytest.importorskip("emsopt.panels._widgets", reason="needs the package ipywidgets")
    draw = widgets.png
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(widgets, "png", lambda *_, **__: b"")
        yield draw


@pytest.fixture
def drawn(undrawn, monkeypatch):
    """Draw as users see it."""
    monkeypatch.setattr("emsopt.panels._widgets.png", undrawn)
