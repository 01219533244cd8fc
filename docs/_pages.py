"""Write the pages that have no prose of their own: the reference, the notebooks, the register of claims, the gallery.

They go to ``docs/generated``. Also the roles and directives that the other pages use.
"""

import base64
import inspect
import re
from pathlib import Path

import _claims
import _curves
import _notebook_pages
import nbformat
from _names import ROOMS, documentation, modules_of, public_names
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.addnodes import pending_xref

import emsopt

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
GENERATED = DOCS / "generated"


# -- the reference ----------------------------------------------------------------------------------------------------


def titled(title, body):
    """Return a page in reStructuredText."""
    return f"{title}\n{'=' * len(title)}\n\n{body}\n"


def name_page(name, value):
    """Return the page of a public name."""
    last = name.rpartition(".")[2]
    if inspect.isclass(value):
        return titled(
            last,
            f".. autoclass:: {name}\n   :members:\n   :inherited-members: object, Exception, HasTraits, str, tuple",
        )
    if callable(value):
        return titled(last, f".. autofunction:: {name}")
    text = documentation(name, value).replace("\n", "\n   ")
    return titled(last, f".. py:data:: {name}\n\n   {text}")


def first_line(name, value):
    """Return the first sentence of a name's docstring."""
    return documentation(name, value).strip().split("\n\n")[0].replace("\n", " ")


def room_page(module, names):
    """Return the page of a module, given by its public name: its docstring and a table of its names."""
    rows = "".join(
        f"   * - :py:obj:`{n.rpartition('.')[2]} <{n}>`\n     - {first_line(n, v)}\n" for n, v in names.items()
    )
    tree = "".join(f"   {name}\n" for name in names)
    table = f".. list-table::\n   :widths: 30 70\n\n{rows}\n" if rows else ""
    hidden = f".. toctree::\n   :hidden:\n\n{tree}" if rows else ""
    return titled(module, f".. automodule:: {module}\n   :no-members:\n\n{table}{hidden}")


def reference():
    """Return the pages of the reference by file name."""
    names, pages, modules = public_names(), {}, []
    for room in ROOMS:
        for module in dict.fromkeys([f"emsopt.{room}", *modules_of(room)]):
            own = {n: v for n, v in names.items() if n.rpartition(".")[0] == module}
            pages[f"reference/{module}.rst"] = room_page(module, own)
            modules.append(module)
    pages |= {f"reference/{name}.rst": name_page(name, value) for name, value in names.items()}
    tree = "".join(f"   {name}\n" for name in modules)
    body = f".. automodule:: emsopt\n   :no-members:\n\n.. toctree::\n   :maxdepth: 1\n\n{tree}"
    return pages | {"reference/index.rst": titled("Reference", body)}


# -- the gallery and the claims ---------------------------------------------------------------------------------------


def figures(notebooks):
    """Return the gallery: a page, and the figures on it by file name, each with the heading above it."""
    files, parts = {}, []
    for name, notebook in notebooks.items():
        heading, maps, pictures = "", [], []
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                heading = (re.findall(r"^#+ (.+?)\s*$", cell.source, re.MULTILINE) or [heading])[-1]
            link = f"(../notebooks/{name}.ipynb#{nodes.make_id(heading)})"
            for data in (output.get("data", {}) for output in cell.get("outputs", [])):
                if "image/png" in data:
                    file = f"figures/{name[:2]}_{len(pictures) + 1}.png"
                    files[file] = base64.b64decode(data["image/png"])
                    pictures.append(f"[![{heading}]({Path(file).name})]{link}\n{heading}\n")
                elif data.get("text/html", "").startswith("<iframe"):
                    page = data["text/html"].replace("<iframe", '<iframe loading="lazy"', 1)
                    maps.append(f"```{{raw}} html\n{page}\n```\n\n[{heading}]{link}\n")
        if maps or pictures:
            title = notebook.cells[0].source.split("\n")[0].lstrip("# ")
            parts.append(f"## {title}\n\n{grid('gallery maps', maps)}{grid('gallery', pictures)}")
    text = "Each figure leads to the code that draws it. Maps can be moved, and their layers, rounds and hours chosen."
    return files | {"figures/index.md": f"# Gallery\n\n{text}\n\n" + "\n".join(parts)}


def grid(kind, shown):
    """Return figures side by side."""
    inside = "".join(f":::{{container}}\n{figure}:::\n" for figure in shown)
    return f"::::{{container}} {kind}\n{inside}::::\n\n" if shown else ""


EXERCISE = re.compile(r"(\*\*\d+\.\*\*.*?)<details><summary>Solution</summary>\n\n(.*?)</details>", re.DOTALL)


def solutions(notebooks):
    """Return the page of all exercises with their solutions."""
    parts = ["# Solutions"]
    for name, notebook in notebooks.items():
        text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        if found := EXERCISE.findall(text):
            title = text.split("\n")[0].lstrip("# ")
            parts.append(f"## {title}\n\nNotebook [{name}](notebooks/{name}.ipynb).")
            parts += [f"{question.strip()}\n\n{solution.strip()}" for question, solution in found]
    return {"solutions.md": "\n\n".join(parts) + "\n"}


class Claims(Directive):
    """The register of the papers' claims as a table that can be filtered, or the claims that its lines name."""

    has_content = True

    def run(self):
        """Return the table in HTML."""
        return [nodes.raw("", _claims.quoted(self.content) if self.content else _claims.register(), format="html")]


# -- writing ----------------------------------------------------------------------------------------------------------


def sheet():
    """Return the live sheet of the first page: the README's deployments, at three times St. Paul's calls."""
    city = emsopt.datasets.load_st_paul().scaled(3)
    best = emsopt.evaluators.evaluate_all(city, 9, evaluator="approximate").best.sites
    return emsopt.maps.live_sheet(city, {"p-median": emsopt.evaluators.p_median(city, 9).sites, "best": best}).html


def write(outputs):
    """Write all generated pages; unchanged files are not touched, so that Sphinx reads only what has changed."""
    notebooks = _notebook_pages.finished(outputs)
    pages = reference() | figures(notebooks) | solutions(notebooks) | _curves.drawn()
    pages["sheet/sheet.html"] = sheet()
    pages |= {f"notebooks/{name}.ipynb": nbformat.writes(notebook) for name, notebook in notebooks.items()}
    for name, content in pages.items():
        file, data = GENERATED / name, content if isinstance(content, bytes) else content.encode()
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != data:
            file.write_bytes(data)
    for file in GENERATED.rglob("*"):
        if file.is_file() and file.relative_to(GENERATED).as_posix() not in pages:
            file.unlink()


def name_role(role, rawtext, text, lineno, inliner, options=None, content=None):
    """Link a public name, also without its room, and show anything else as code."""
    code = nodes.literal(rawtext, text)
    last = text.removesuffix("()").removeprefix("emsopt.").removeprefix("eo.")
    known = [name for name in public_names() if f".{name}".endswith(f".{last}")] or None
    if not known:
        return [code], []
    target = min(known, key=len)
    reference = pending_xref(rawtext, code, refdomain="py", reftype="obj", reftarget=target, refexplicit=True)
    reference["refdoc"] = inliner.document.settings.env.docname
    return [reference], []


def setup(app):
    """Register the roles and directives."""
    app.add_role("name", name_role)
    app.add_directive("claims", Claims)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
