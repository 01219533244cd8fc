"""A place for compiled code where neither the package nor a home can be written."""

import os
import tempfile

import pytest

from emsopt._running.compiled import choose_cache_folder


@pytest.mark.skipif(os.name != "posix", reason="folders have owners on POSIX systems")
def test_compiled_code_goes_to_a_folder_of_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    choose_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == "mine"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    choose_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / f"emsopt-{os.getuid()}")
    assert (tmp_path / f"emsopt-{os.getuid()}").stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (tmp_path / "emsopt-12345").mkdir()  # of another user, who could put code there
    choose_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] != str(tmp_path / "emsopt-12345")
