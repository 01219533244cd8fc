"""What is used without a checkout: the dashboard served by a command, and copies of the notebooks. See also .ci/wheel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emsopt.commands import notebooks


def test_the_notebooks_are_copied_and_none_is_replaced_unless_forced(tmp_path, emsopt):
    emsopt("notebooks", tmp_path / "course")
    source = notebooks.notebooks_folder()
    copied = {path.name: path.read_bytes() for path in (tmp_path / "course").glob("*.ipynb")}
    assert copied == {path.name: path.read_bytes() for path in source.glob("*.ipynb")}
    picture, given = (folder / "figures" / "st_paul.png" for folder in (tmp_path / "course", source))
    assert picture.read_bytes() == given.read_bytes()
    mine = tmp_path / "course" / "06_your_city.ipynb"
    mine.write_text("mine")
    (tmp_path / "course" / "dashboard.ipynb").unlink()
    assert "nothing was copied" in emsopt("notebooks", tmp_path / "course", status=2)
    assert mine.read_text() == "mine"
    assert not (tmp_path / "course" / "dashboard.ipynb").exists()
    emsopt("notebooks", tmp_path / "course", "--force")
    assert mine.read_bytes() == copied["06_your_city.ipynb"]


def test_ctrl_c_while_packages_are_loaded_ends_in_a_sentence(monkeypatch, emsopt):
    """A library may make another error of it."""

    def interrupted(*_):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr("emsopt.__main__.import_module", interrupted)
    assert emsopt("city", "--practice", status=130) == "\nInterrupted. No file was left incomplete.\n"


def test_the_dashboard_is_served_as_the_readme_says_with_a_project(tmp_path, monkeypatch, emsopt):
    pytest.importorskip("voila")
    from emsopt.commands import dashboard

    assert pytest.importorskip("emsopt.panels._dashboard").PROJECT_VARIABLE == dashboard.PROJECT_VARIABLE
    calls = []
    monkeypatch.setattr(os, "execve", lambda *given: calls.append(given[1:]))
    monkeypatch.setattr(subprocess, "run", lambda arguments, env, check: calls.append((arguments, env)))
    monkeypatch.delenv(dashboard.PROJECT_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "town.json").write_text("{}")
    emsopt("dashboard", "town.json", "--port", "9000", "--no-browser")
    emsopt("dashboard")
    (arguments, environment), (_, plain) = calls[0], calls[-1]
    assert environment["EMSOPT_PROJECT"] == str(tmp_path / "town.json")
    assert "EMSOPT_PROJECT" not in plain
    assert (arguments[1:3], Path(arguments[3]).name) == (["-m", "voila"], "dashboard.ipynb")
    assert Path(arguments[3]).is_file()
    assert "--Voila.tornado_settings={'allow_remote_access': False}" in arguments
    assert {"--Voila.auto_token=True", "--VisitorKernelManager.most=4"} <= set(arguments)
    assert arguments[-2:] == ["--port=9000", "--no-browser"]


def test_a_project_that_does_not_exist_and_a_missing_voila_are_told(tmp_path, emsopt, monkeypatch):
    pytest.importorskip("voila")
    assert "there is no file" in emsopt("dashboard", tmp_path / "no.json", status=2)
    monkeypatch.delitem(sys.modules, "emsopt.commands.dashboard")
    monkeypatch.setitem(sys.modules, "voila", None)
    assert "pip install 'emsopt[notebooks]'" in emsopt("dashboard", status=2)
