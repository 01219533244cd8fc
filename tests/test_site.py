"""What the site shows of the package: every public name has an example, and constants' examples run.

Examples of functions and classes run as doctests of their modules. Those of constants stand in the strings below them,
which doctest does not find.
"""

import doctest
import importlib

import pytest


@pytest.fixture(scope="module")
def names(script):
    return script("docs/_names.py")


def test_every_public_name_has_an_example(names):
    found = names.public_names()
    assert len(found) > 200
    assert [name for name, value in found.items() if ">>> " not in names.documentation(name, value)] == []


def test_examples_of_constants_run(names):
    constants = {name: value for name, value in names.public_names().items() if not callable(value)}
    assert {"emsopt.optimizers.METHODS", "emsopt.evaluators.EXACT_UP_TO"} < set(constants)
    runner = doctest.DocTestRunner()
    for name, value in constants.items():
        scope = dict(vars(importlib.import_module(name.rpartition(".")[0])))
        runner.run(doctest.DocTestParser().get_doctest(names.documentation(name, value), scope, name, None, 0))
    assert runner.summarize(verbose=False) == (0, runner.tries)
    assert runner.tries >= len(constants)
