"""Published pickles are read as data: nothing in them is run, and only plain arrays come out."""

import hashlib
import os
import pickle
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import emsopt as eo
from emsopt import datasets
from emsopt._files import pickles
from emsopt.errors import DataUnavailableError, InputError

# Forged files. The first lets NumPy take eight letters for the address of an object, which ends the process; the second
# changes what a function of the reader does; the third asks for 8 GB; the others name what must not be called.
ARRAY = b"cnumpy\nndarray\n(cnumpy\nndarray\n(K\x01\x85X\x01\x00\x00\x00OC\x08AAAAAAAAtRtR."
FORGED = {
    "objects from bytes": b"\x80\x04" + ARRAY,
    "a default argument": b"\x80\x03cnumpy.core.multiarray\n_reconstruct\nN}X\x0c\x00\x00\x00__defaults__Ns\x86b.",
    "memory": b"Nr\xff\xff\xff\x1f.",
    "a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0fndarray.__new__\x93.",
    "an extension": b"\x80\x02\x82\x01.",
    "a persistent object": b"Pobject\n.",
    "a mark too few": b"\x80\x03K\x01(K\x02\x86.",
    "nothing": b"",
    "an end without a value": b".",
    "no text": b"\x80\x03}(K\x01K\x02u.",
}


class Harm:
    """What an unpickler would do with this: call any function with any arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def read_as_if_published(path, content):
    path.write_bytes(content)
    return pickles.read_arrays(path, hashlib.sha256(content).hexdigest())


def as_published(value):
    """Return a pickle as the published files are: of the NumPy of their time."""
    return pickle.dumps(value, protocol=3).replace(b"numpy._core", b"numpy.core")


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_a_forged_pickle_is_refused_with_and_without_the_right_checksum(tmp_path, monkeypatch, content):
    path = tmp_path / "Saint_Paul.pkl"
    path.write_bytes(content)
    monkeypatch.setenv("EMSOPT_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=r"Saint_Paul.pkl is not the file that was published"):
        eo.datasets.load_st_paul("published")
    with pytest.raises(InputError, match=r"Saint_Paul.pkl was not read: its sha256 is"):
        pickles.read_arrays(path, datasets.cities.PUBLISHED_SHA256)
    monkeypatch.setattr(datasets.cities, "PUBLISHED_SHA256", hashlib.sha256(content).hexdigest())
    with pytest.raises(InputError, match=r"Saint_Paul.pkl is not a readable pickle"):
        eo.datasets.load_st_paul("published")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_pickle_is_called(tmp_path, protocol):
    """Even with the right checksum: such a file is refused, or what it would call is taken for a record of no use."""
    proof = tmp_path / "proof"
    for harm in (
        Harm(os.system, f"touch {proof}"),
        Harm(eval, f"open({str(proof)!r}, 'w')"),
        {"f": [Harm(Path.touch, proof)], "e": Harm(exec, f"open({str(proof)!r}, 'w')")},
        {"f": np.array([Harm(os.system, f"touch {proof}")], dtype=object)},
    ):
        with suppress(InputError):
            assert read_as_if_published(tmp_path / "data.pkl", pickle.dumps(harm, protocol=protocol)) == {}
    assert {path.name for path in tmp_path.iterdir()} == {"data.pkl"}


def test_arrays_of_plain_numbers_are_read_and_no_others(tmp_path):
    path = tmp_path / "data.pkl"
    numbers = {"f": np.arange(71.0)[None] / 7, "e": np.asfortranarray([[1, 2], [3, 4]])}
    extra = {"K": 71, "text": ["St. Paul", None, 2.5], "two": [np.ones(2), np.ones(3)]}
    back = read_as_if_published(path, as_published({**numbers, **extra}))
    assert set(back) == {"f", "e"}, "what holds no array, or two, is left out"
    for key, value in numbers.items():
        assert np.array_equal(back[key], value)
        assert back[key].dtype == value.dtype
    for other in (np.array([None]), np.array(["a"]), np.zeros(2, "f8,O"), np.ones(3, ">f8"), np.ones(2, bool)):
        with pytest.raises(InputError, match=r"data.pkl is not a readable pickle"):
            read_as_if_published(path, as_published({"f": other}))
    forged = as_published(numbers).replace(b"K\x01KG\x86", b"K\x02KG\x86")  # more numbers than there are
    with pytest.raises(InputError, match="cannot reshape"):
        read_as_if_published(path, forged)


def test_a_pickle_that_is_cut_short_is_refused(tmp_path):
    content = as_published({"f": np.ones(3)})
    for keep in range(len(content)):
        with pytest.raises(InputError, match=r"data.pkl is not a readable pickle"):
            read_as_if_published(tmp_path / "data.pkl", content[:keep])
