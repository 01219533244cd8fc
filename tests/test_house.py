"""The house: rooms from the ground up, each importing only from those below it.

Imports are read from the source, those inside functions too: a piece that is imported late depends on its room all the
same.
"""

import ast
import inspect
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import emsopt

PACKAGE = Path(emsopt.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_ENTRIES = 24
# Most lines and files of each room, and most public names: what a reader has to know may grow by 2 % before something leaves.
MOST = {
    "_files": (1_325, 8),
    "_running": (975, 7),
    "bandits": (1_660, 8),
    "calls": (6_250, 22),
    "city": (1_215, 5),
    "commands": (715, 6),
    "datasets": (685, 6),
    "errors": (485, 3),
    "evaluators": (5_360, 21),
    "maps": (1_285, 9),
    "operations": (1_955, 9),
    "optimizers": (5_030, 23),
    "panels": (4_130, 16),
    "planning": (3_155, 11),
    "plots": (1_300, 8),
    "problems": (1_955, 11),
    "roads": (1_805, 9),
    "surrogates": (1_255, 6),
    "top": (155, 2),
}
MOST_NAMES = 160
# From the ground up: each may import those before it.
ORDER = [
    "errors",
    "_files",
    "_running",
    "city",
    "roads",
    "surrogates",
    "evaluators",
    "calls",
    "operations",
    "bandits",
    "problems",
    "optimizers",
    "planning",
    "datasets",
    "maps",
    "plots",
    "panels",
    "commands",
    "__main__",
    "__init__",
]  # the last is the face of the package, which offers all the others; none of them imports it
FLOOR = {room: floor for floor, room in enumerate(ORDER)}


def module_of(file):
    """Return the name of a module below the package, in parts: ("city", "travel"), and ("city",) for a room's own."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts


MODULES = {module_of(file): file for file in FILES}


def statements(node):
    """Yield all nodes below one, except those under ``if TYPE_CHECKING:``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from statements(ast.Module(child.orelse, []))
        else:
            yield child
            yield from statements(child)


def imports(source, package):
    """Return the modules of emsopt that a source imports, with lines; `package` has the parts of where it is."""
    found = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = ["emsopt", *package][: len(package) + 2 - node.level] if node.level else []
            base = above + (node.module.split(".") if node.module else [])
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        found |= {(module_with(name[1:]), node.lineno) for name in names if name[0] == "emsopt"}
    return found


def module_with(parts):
    """Return the module that a name is, or is in."""
    parts = tuple(parts)
    while parts and parts not in MODULES:
        parts = parts[:-1]
    return parts or ("__init__",)


def imports_of(module):
    file = MODULES[module]
    found = imports(file.read_text("utf-8"), file.relative_to(PACKAGE).parts[:-1])
    return {(target, line) for target, line in found if target != module}


def test_every_room_has_its_floor():
    assert {module[0] for module in MODULES} == set(ORDER)


def test_contributors_are_told_the_same_order():
    page = PACKAGE.parent / "CONTRIBUTING.md"
    if not page.is_file():
        pytest.skip("needs the repository: CONTRIBUTING.md is not part of the package")
    rows = re.findall(r"^\| (`.*?) \|", page.read_text("utf-8"), re.MULTILINE)
    assert re.findall(r"`(\w+)/?`", " ".join(rows)) == ORDER[:-1]


def test_rooms_import_only_from_those_below():
    upward = [
        f"{MODULES[module].relative_to(PACKAGE)}, line {line}, imports {'.'.join(target)}"
        for module in MODULES
        for target, line in sorted(imports_of(module))
        if target[0] != module[0] and FLOOR[target[0]] >= FLOOR[module[0]]
    ]
    assert upward == []


def test_files_do_not_import_each_other_in_a_circle():
    graph = {module: {target for target, _ in imports_of(module)} for module in MODULES}
    TopologicalSorter(graph).prepare()  # a CycleError shows the circle


def test_the_top_is_seen_at_a_glance():
    entries = [path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_every_room_says_what_lives_there():
    silent = [
        ".".join(module)
        for module, file in MODULES.items()
        if file.name == "__init__.py" and not ast.get_docstring(ast.parse(file.read_text("utf-8")))
    ]
    assert silent == []


def test_rooms_do_not_grow_unseen():
    for room, (lines, files) in MOST.items():
        own = [
            file
            for module, file in MODULES.items()
            if (module[0] == room or (room == "top" and file.parent == PACKAGE))
        ]
        assert len(own) <= files, room
        assert sum(len(file.read_text("utf-8").splitlines()) for file in own) <= lines, room
    rooms = [getattr(emsopt, name) for name in emsopt.__all__]
    names = {name for name, value in zip(emsopt.__all__, rooms, strict=True) if not inspect.ismodule(value)}
    names = names.union(*(getattr(room, "__all__", ()) for room in rooms if inspect.ismodule(room)))
    assert len(names) <= MOST_NAMES
    assert set(MOST) == {module[0] for module in MODULES if len(module) > 1} | {"top"}
