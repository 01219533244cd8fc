"""Published pickles are read as data: nothing in them is run, and only plain arrays come out."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import emsopt as eo
from emsopt._files import pickles
from emsopt.errors import DataUnavailableError


class Harm:
    """What an unpickler would do with this: call any function with any arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def read(path, content):
    path.write_bytes(content)
    return pickles.read_arrays(path)


def test_a_file_with_another_checksum_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "Saint_Paul.pkl"
    path.write_bytes(pickle.dumps({"f": np.ones(3)}))
    monkeypatch.setenv("EMSOPT_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=r"Saint_Paul.pkl is not the file that was published"):
        eo.datasets.load_st_paul("published")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_pickle_is_called(tmp_path, protocol):
    """What it would call is taken for a record of no use."""
    proof = tmp_path / "proof"
    harm = {
        "f": [Harm(Path.touch, proof), Harm(os.system, f"touch {proof}")],
        "e": Harm(exec, f"open({str(proof)!r}, 'w')"),
    }
    assert read(tmp_path / "data.pkl", pickle.dumps(harm, protocol=protocol)) == {}
    assert {path.name for path in tmp_path.iterdir()} == {"data.pkl"}


def test_arrays_of_plain_numbers_are_read_and_no_others(tmp_path):
    numbers = {"f": np.arange(71.0)[None] / 7, "e": np.asfortranarray([[1, 2], [3, 4]])}
    nested = {"d": {"deep": [({"x": np.float64(2.5)},)]}}
    extra = {"K": 71, "text": ["St. Paul", None, 2.5], "two": [np.ones(2), np.ones(3)]}
    # as the published files are: of the NumPy of their time
    content = pickle.dumps({**numbers, **nested, **extra}, protocol=3).replace(b"numpy._core", b"numpy.core")
    back = read(tmp_path / "data.pkl", content)
    assert set(back) == {"f", "e", "d"}, "what holds no array, or two, is left out"
    assert back["d"].tolist() == [2.5]
    for key, value in numbers.items():
        assert np.array_equal(back[key], value)
        assert back[key].dtype == value.dtype
