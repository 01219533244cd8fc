"""Panels draw their pictures only for tests that look at them: most of a test's time would go there."""

import pytest

import emsopt as eo


def pytest_pycollect_makemodule():
    """Skip this folder without ipywidgets, which its modules import."""
    pytest.importorskip("ipywidgets", reason="needs the package ipywidgets")


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


@pytest.fixture(scope="session")
def city():
    return eo.datasets.load_st_paul()
