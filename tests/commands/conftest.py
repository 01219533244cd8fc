"""The command as a user runs it, and a way to spare its figures."""

import pytest

from emsopt.__main__ import main
from emsopt.commands import _output


@pytest.fixture
def emsopt(capsys):
    """Run ``emsopt`` with arguments, check its status, and return its results or, if it failed, all it printed."""

    def run(*arguments, status=0):
        assert main([*map(str, arguments)]) == status
        out, err = capsys.readouterr()
        assert status != 2 or "emsopt: " in err
        return out + err if status else out

    return run


@pytest.fixture
def no_figure(monkeypatch):
    """Figures take a second each, and are tested elsewhere."""
    monkeypatch.setattr(_output, "draw_deployments", lambda *_: [])
