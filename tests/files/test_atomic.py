"""Every writer under a full disk, in a read-only folder and with paths that cannot be: one clear error, nothing lost."""

import errno
import itertools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from refusals import refused

import emsopt as eo
from emsopt.__main__ import main
from emsopt.commands import st_paul
from emsopt.errors import WriteError
from emsopt.maps.deployments import deployment_map

on_posix = pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
STEPS = {"os.fsync": os.fsync, "os.replace": os.replace, "pathlib.Path.rename": Path.rename}
FULL, QUOTA = OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "over the quota")
TOWN = eo.datasets.grid_city(n_sites=5, units=2, rng=1, size=3)


def save_city(number, path):  # as the next one, writes what depends on the number
    return TOWN.scaled(number).save(path)


def save_map(number, path):
    return deployment_map(TOWN, eo.evaluators.approximate_hypercube(TOWN, [0, number])).save(path)


both = pytest.mark.parametrize("save", [save_city, save_map])  # a folder and a file


def snapshot(folder):
    """Return the content of every file below a folder by name; None for a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


def failing_at(number, error, call):
    """Return a function that calls another, but fails when it is called for the given time, counted from 0."""
    calls = itertools.count()
    return lambda *given: raising(error)() if next(calls) == number else call(*given)


@contextmanager
def untouched(save, folder):
    """Save once, and check afterwards that all below the folder is as it was."""
    save(1, folder / "kept")
    before = snapshot(folder)
    yield
    assert snapshot(folder) == before


def not_written(save, path, words):
    with pytest.raises(WriteError, match=words) as caught:
        save(2, path)
    assert str(caught.value).startswith(f"{path} could not be written: ")


@pytest.mark.parametrize(
    ("save", "step", "after", "error", "words"),
    [
        (save_map, "os.fsync", 0, FULL, "the disk is full.*Free some space"),
        (save_city, "os.fsync", 0, FULL, "the disk is full.*Free some space"),
        (save_city, "os.fsync", 3, FULL, "the disk is full.*Free some space"),
        (save_map, "os.replace", 0, QUOTA, "quota"),
        (save_city, "pathlib.Path.rename", 1, QUOTA, "quota"),  # the earlier folder has stepped aside, and returns
    ],
)
def test_a_full_disk_leaves_what_was_there(save, step, after, error, words, tmp_path, monkeypatch):
    with untouched(save, tmp_path), monkeypatch.context() as patch:
        patch.setattr(step, failing_at(after, error, STEPS[step]))
        not_written(save, tmp_path / "kept", words)


@both
def test_an_interrupted_writer_leaves_nothing_either_and_what_is_write_protected_stays(save, tmp_path, monkeypatch):
    with untouched(save, tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", raising(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                save(2, tmp_path / "kept")
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or Path(path).name != "kept")
        not_written(save, tmp_path / "kept", "permission was denied")


@on_posix
@both
def test_a_folder_without_permission_leaves_what_was_there(save):
    """Without any stand-in; who may do anything tries as a user who may not."""
    folder, user = Path(tempfile.mkdtemp()), os.geteuid()  # above it, everybody may enter, unlike in `tmp_path`
    try:
        with untouched(save, folder):
            folder.chmod(0o555)
            try:
                if user == 0:
                    os.seteuid(65534)
                for name in ("kept", "new"):
                    not_written(save, folder / name, r"permission was denied.*Change the perm")
            finally:
                os.seteuid(user)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@on_posix
@both
def test_permissions_are_kept_and_what_a_link_leads_to_is_replaced(save, tmp_path):
    save(1, tmp_path / "real").chmod(0o700)
    first = snapshot(tmp_path / "real") or (tmp_path / "real").read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(2, tmp_path / "link")
    assert ((tmp_path / "link").is_symlink(), stat.S_IMODE((tmp_path / "real").stat().st_mode)) == (True, 0o700)
    assert (snapshot(tmp_path / "real") or (tmp_path / "real").read_bytes()) != first
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link"}


@both
def test_a_path_that_cannot_be_is_an_input_error(save, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (3, "", "a\0b", "a" * 5000):
        refused("must be the path of a file or folder.*got|too long.*Shorten it", save, 1, path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    refused("a file is in the place of a folder", save, 1, tmp_path / "file" / "new")
    if save is save_map:
        refused("the path is a folder, but a file is to be written", save, 1, tmp_path / "folder")
        refused("/dev/null is a device or a pipe|folder", save, 1, "/dev/null")
    assert snapshot(tmp_path) == {"file": b"mine", "folder": None}


@pytest.fixture
def command(tmp_path):
    """Arguments of the command for a small city, but for --out."""
    return ["--city", str(TOWN.save(tmp_path / "town")), "--units", "2"]


def test_the_command_stops_at_a_full_disk_with_whole_files_only(command, tmp_path, monkeypatch, capsys):
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    whole = snapshot(tmp_path / "whole")
    written = ["deployments.html", "deployments.png", "by_load.csv"]
    assert set(whole) == set(written)
    for after in range(len(written)):
        out = tmp_path / f"out {after}"
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", failing_at(after, FULL, os.fsync))
            assert main([*command, "--out", str(out)]) == 2
        assert "could not be written: the disk is full" in capsys.readouterr().err
        assert snapshot(out) == {name: whole[name] for name in written[:after]}


def test_the_command_tries_its_folder_before_it_works(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(st_paul, "find_deployments", lambda *_: pytest.fail("the search started"))
    monkeypatch.setattr(Path, "touch", raising(OSError(errno.EROFS, "read-only")))
    (tmp_path / "out").mkdir()
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert f"emsopt: {tmp_path / 'out'} could not be written: the disk is read-only" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_what_is_printed_may_not_be_taken(command, tmp_path):
    """A full disk is said, without a traceback."""
    words = [sys.executable, "-m", "emsopt", *command, "--out", str(tmp_path / "out")]
    with open("/dev/full", "w") as sink:
        done = subprocess.run(words, stdout=sink, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "emsopt: the output could not be printed: No space left on device. Print it elsewhere." in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
