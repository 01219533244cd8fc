"""Where files are found: in the folder of the user, in the package, in the cache, or fetched and checked."""

import hashlib

import pooch
import pytest

from emsopt._files import locate
from emsopt.errors import DataUnavailableError

CONTENT = b"\x00all is well\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
GIT_BLOB = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, and no EMSOPT_DATA."""
    monkeypatch.setattr(locate, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("EMSOPT_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def asked(monkeypatch):
    """The addresses asked for, of which only http://h/good.bin and http://h/bad.bin answer."""
    addresses = []

    def answer(self, url, output_file, _):
        addresses.append(url)
        output_file.write({"http://h/good.bin": CONTENT, "http://h/bad.bin": CONTENT + b"?"}.get(url, b""))
        if not output_file.tell():
            raise ConnectionError("no such host")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", answer)
    return addresses


@pytest.mark.parametrize("check", [SHA256, GIT_BLOB])
def test_a_file_is_fetched_once_checked_and_then_kept(cache, asked, check):
    for _ in range(2):
        path = locate.find_data("some/good.bin", "http://h/good.bin", check)
        assert (path, path.read_bytes()) == (cache / "some" / "good.bin", CONTENT)
    assert (asked, [path.name for path in path.parent.iterdir()]) == (["http://h/good.bin"], ["good.bin"])
    path.write_bytes(b"half of i")  # is fetched anew
    assert locate.find_data("some/good.bin", "http://h/good.bin", check).read_bytes() == CONTENT
    with pytest.raises(DataUnavailableError, match=f"h/bad.bin did not send.*{check}.*not kept.*EMSOPT_DATA"):
        locate.find_data("bad.bin", "http://h/bad.bin", check)
    assert not (cache / "bad.bin").exists()


def test_without_a_network_the_message_says_which_file_to_put_where(cache, asked, tmp_path, monkeypatch):
    wanted = f"could not be downloaded.*Download http://n/x by other means and put it at some/x in.*{SHA256}"
    with pytest.raises(DataUnavailableError, match=wanted):
        locate.find_data("some/x", "http://n/x", SHA256)
    monkeypatch.setenv("EMSOPT_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=f"some/x in EMSOPT_DATA .now {tmp_path}"):
        locate.find_data("some/x", "http://n/x", SHA256)
    (tmp_path / "some").mkdir()  # and what the message asks for helps
    (tmp_path / "some" / "x").write_bytes(CONTENT)
    assert locate.find_data("some/x", "http://n/x", SHA256) == tmp_path / "some" / "x"


def test_emsopt_data_comes_first_then_the_package_then_the_cache(cache, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    for folder in (mine, cache):
        (folder / "papers").mkdir(parents=True)
        (folder / "papers" / "table_1.csv").write_bytes(CONTENT)
        (folder / "other.csv").write_bytes(CONTENT)
    assert locate.find_data("papers/table_1.csv") == locate.package_file("papers", "table_1.csv")
    assert locate.find_data("other.csv") == cache / "other.csv"
    monkeypatch.setenv("EMSOPT_DATA", str(mine))
    assert locate.find_data("papers/table_1.csv") == mine / "papers" / "table_1.csv"
    assert locate.find_data("nothing/other.csv") == mine / "other.csv"
    (mine / "other.csv").write_bytes(b"something else")
    with pytest.raises(DataUnavailableError, match=f"{mine / 'other.csv'} is not the file.*{SHA256}"):
        locate.find_data("other.csv", checksum=SHA256)
