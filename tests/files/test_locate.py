"""Where files are found: in the folder of the user, in the package, in the cache, or fetched and checked."""

import functools
import hashlib
import http.server
import threading

import pytest

from emsopt._files import locate
from emsopt.errors import DataUnavailableError

CONTENT = b"\x00all is well\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, no EMSOPT_DATA, and no proxy between here and here."""
    monkeypatch.setattr(locate, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("EMSOPT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


class Quiet(http.server.SimpleHTTPRequestHandler):
    requests = ()

    def do_GET(self):
        type(self).requests += (self.path,)
        super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """A server of one good and one bad file on this machine; yields its address and the requests it had."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "good.bin").write_bytes(CONTENT)
    (tmp_path / "served" / "bad.bin").write_bytes(CONTENT + b"?")
    handler = type("Handler", (Quiet,), {})
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=tmp_path / "served")
    ) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", lambda: handler.requests
        running.shutdown()


def git_blob(content):
    return hashlib.sha1(b"blob " + str(len(content)).encode() + b"\0" + content).hexdigest()


@pytest.mark.parametrize("check", [SHA256, git_blob(CONTENT)])
def test_a_file_is_fetched_once_and_then_kept(cache, server, check):
    address, requests = server
    for _ in range(2):
        path = locate.find_data("some/good.bin", f"{address}/good.bin", check)
        assert (path, path.read_bytes()) == (cache / "some" / "good.bin", CONTENT)
    assert (requests(), [path.name for path in path.parent.iterdir()]) == (("/good.bin",), ["good.bin"])


@pytest.mark.parametrize("check", [SHA256, git_blob(CONTENT)])
def test_a_download_with_the_wrong_checksum_is_not_kept(cache, server, check):
    address, _ = server
    with pytest.raises(DataUnavailableError, match=f"{address}/bad.bin did not send.*{check}.*not kept.*EMSOPT_DATA"):
        locate.find_data("bad.bin", f"{address}/bad.bin", check)
    assert not list(cache.iterdir())


def test_a_damaged_file_in_the_cache_is_fetched_anew(cache, server):
    cache.mkdir()
    (cache / "good.bin").write_bytes(b"half of i")
    path = locate.find_data("good.bin", f"{server[0]}/good.bin", SHA256)
    assert path.read_bytes() == CONTENT


def test_without_a_network_the_message_says_which_file_to_put_where(cache, server, tmp_path, monkeypatch):
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as closed:
        nowhere = f"http://127.0.0.1:{closed.server_port}/good.bin"
    wanted = f"could not be downloaded.*Download {nowhere} by other means and put it at some/good.bin in.*EMSOPT_DATA.*{SHA256}"
    with pytest.raises(DataUnavailableError, match=wanted):
        locate.find_data("some/good.bin", nowhere, SHA256)
    monkeypatch.setenv("EMSOPT_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=f"y/x.bin in EMSOPT_DATA .now {tmp_path}"):
        locate.find_data("y/x.bin", nowhere, SHA256)
    # and what the message asks for helps
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "good.bin").write_bytes(CONTENT)
    assert locate.find_data("some/good.bin", nowhere, SHA256) == tmp_path / "some" / "good.bin"


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
