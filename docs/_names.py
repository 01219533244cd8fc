"""The public names of the package, and what their docstrings say."""

import ast
import importlib
import inspect
import pkgutil
from itertools import pairwise
from pathlib import Path

import emsopt

ROOMS = [name for name in emsopt.__all__ if inspect.ismodule(getattr(emsopt, name))]


def own_names(module, results=True):
    """Return the public names of a module: its ``__all__``, or else the functions and classes that it defines.

    With ``results``, classes that it offers beside its ``__all__`` are among them, as calls return them.
    """
    listed, inside = getattr(module, "__all__", None), f"{module.__name__}."
    if listed is None:
        here = lambda value: (
            (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == module.__name__
        )
        listed = [name for name, value in vars(module).items() if not name.startswith("_") and here(value)]
    elif results:
        returned = lambda value: inspect.isclass(value) and value.__module__.startswith(inside)
        listed = {*listed, *(name for name, value in vars(module).items() if name[0] != "_" and returned(value))}
    return sorted(name for name in listed if not inspect.ismodule(getattr(module, name)))


def modules_of(room):
    """Return the modules whose names are public, by their own: the room itself, or its files if it lists no names."""
    module = getattr(emsopt, room)
    if hasattr(module, "__all__") or not hasattr(module, "__path__"):
        return {f"emsopt.{room}": module}
    inside = (name for _, name, _ in pkgutil.iter_modules(module.__path__) if not name.startswith("_"))
    return {f"emsopt.{room}.{name}": importlib.import_module(f"emsopt.{room}.{name}") for name in inside}


def public_names(results=True):
    """Return all public names, from full name to object. What `emsopt` itself offers stands in its rooms, too."""
    modules = [item for room in ROOMS for item in modules_of(room).items()]
    found = {f"{path}.{name}": getattr(module, name) for path, module in modules for name in own_names(module, results)}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def documentation(name, value):
    """Return the docstring of a name. That of a constant is the string below its assignment."""
    if callable(value):
        return inspect.getdoc(value) or ""
    module, _, last = name.rpartition(".")
    for file in sorted(Path(importlib.import_module(module).__file__).parent.rglob("*.py")):
        body = ast.parse(file.read_text("utf-8")).body
        for statement, below in pairwise(body):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            text = getattr(getattr(below, "value", None), "value", None)
            if any(getattr(target, "id", "") == last for target in targets) and isinstance(text, str):
                return inspect.cleandoc(text)
    return ""
