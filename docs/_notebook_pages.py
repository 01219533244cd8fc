"""Run the notebooks once, keep their outputs, and turn widgets into what a page without a kernel can show.

    python docs/_notebook_pages.py [NUMBER ...]
    python docs/_notebook_pages.py --store       # the start page with its outputs, for viewers that run nothing

Outputs are kept in ``docs/_build/executed`` until the notebook or the package changes. An error in a cell is an error.
Notebooks that nbval has run (`_keep_outputs`) are there already.
"""

import base64
import hashlib
import json
import math
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html import escape
from io import BytesIO
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "notebooks").glob("*.ipynb"))
CACHE = ROOT / "docs" / "_build" / "executed"
PATIENCE = 300  # s, for one cell
PNG = "image/png"
LARGE = 20_000  # characters of an output: more is a map, which works only in a running notebook


def key(path: Path) -> str:
    """Return a digest of all that a notebook's outputs depend on in this repository."""
    folders = (ROOT / "emsopt", ROOT / "notebooks" / "papers")
    files = [path, *(file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file())]
    files = [file for file in files if file.suffix not in (".pyc", ".nbi", ".nbc")]
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()[:16]


def execute(path: Path) -> Path:
    """Run a notebook, unless its outputs are kept already, and return the file with outputs."""
    if (kept := kept_at(path)).is_file():
        return kept
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook, timeout=PATIENCE, resources={"metadata": {"path": folder}}, store_widget_state=True
        ).execute()
    return keep(path, notebook)


def kept_at(path: Path) -> Path:
    """Return the file for a notebook's outputs."""
    return CACHE / f"{path.stem}.{key(path)}.ipynb"


def keep(path: Path, notebook: nbformat.NotebookNode) -> Path:
    """Write a notebook that has run, in place of its older outputs, and return the file."""
    kept = kept_at(path)
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.glob(f"{path.stem}.*.ipynb"):
        old.unlink()
    part = kept.with_suffix(".part")
    nbformat.write(notebook, part)
    part.replace(kept)
    return kept


def execute_all(sources: list[Path] = SOURCES, workers: int | None = None) -> dict[str, Path]:
    """Run notebooks side by side, one per processor, and return the files with outputs by name."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), str(ROOT / "notebooks"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return {path.stem: file for path, file in zip(sources, pool.map(execute, sources), strict=True)}


def newest(path: Path) -> Path:
    """Return the file with outputs that was written last, even if the notebook or the package has changed since."""
    return max(CACHE.glob(f"{path.stem}.*.ipynb"), key=lambda file: file.stat().st_mtime, default=path)


def finished(outputs: str = "new") -> dict[str, nbformat.NotebookNode]:
    """Return the notebooks as a page shows them, by name. `outputs` is "new", "kept" (maybe out of date) or "off"."""
    if outputs == "new":
        files = execute_all()
    else:
        files = {path.stem: newest(path) if outputs == "kept" else path for path in SOURCES}
    return {name: frozen(nbformat.read(file, as_version=4)) for name, file in files.items()}


def store(path: Path) -> None:
    """Run a notebook and write it with the outputs that a viewer without a kernel can show: texts, tables, figures."""
    notebook = nbformat.read(execute(path), as_version=4)
    notebook.metadata.pop("widgets", None)
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        small = [
            output for output in cell["outputs"] if PNG in output.get("data", ()) or len(json.dumps(output)) < LARGE
        ]
        cell["outputs"] = [output for output in small if VIEW not in output.get("data", ())]
        for output in cell["outputs"]:
            if png := output.get("data", {}).get(PNG):
                output["data"][PNG] = _smaller(png)
    nbformat.write(notebook, path)


def _smaller(png: str) -> str:
    """Return a figure in a hundred colours and at most a thousand pixels wide."""
    image = Image.open(BytesIO(base64.b64decode(png))).convert("RGB")
    image.thumbnail((1000, 1000))
    image.quantize(100).save(small := BytesIO(), "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


# -- widgets without a kernel -----------------------------------------------------------------------------------------

VIEW, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"


def frozen(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Replace each widget by HTML that shows its last state. Maps inside stay alive, as they need no kernel."""
    models = notebook.metadata.pop("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if view := output.get("data", {}).pop(VIEW, None):
                shown = html_of(view["model_id"], models)
                output["data"] = {"text/html": f'<div class="frozen" title="{NEEDS_KERNEL}">{shown}</div>'}
            elif "text/html" in output.get("data", {}):
                output["data"]["text/html"] = "".join(output["data"]["text/html"])
    return notebook


NEEDS_KERNEL = "These controls work in a running notebook; here they show how it left them."


def html_of(name: str, models: dict) -> str:
    """Return a widget's last state in HTML; `models` is the state that the notebook stores."""
    model = models[name.removeprefix("IPY_MODEL_")]
    state, kind = model["state"], model["model_name"].removesuffix("Model")
    layout = models.get(state.get("layout", "").removeprefix("IPY_MODEL_"), {"state": {}})["state"]
    if layout.get("height") == "0":  # carries state to the browser and shows nothing
        return ""
    rules = {key.replace("_", "-"): value for key, value in layout.items() if key[0] != "_" and isinstance(value, str)}
    style = escape("; ".join(f"{key}: {value}" for key, value in rules.items()))
    children = [html_of(child, models) for child in state.get("children", [])]
    value, label = state.get("value"), escape(str(state.get("description", "")))
    open_tag = f'<div class="frozen-{kind.lower()}" style="{style}">'
    if "_esm" in state and "accept" not in state:  # a widget of anywidget: `_static/widgets.js` runs it
        kept = {key: item for key, item in state.items() if key in ("_esm", "_css") or not key.startswith("_")}
        data = json.dumps(kept).replace("</", "<\\/")
        return f'{open_tag}<script type="application/x-anywidget">{data}</script></div>'
    if kind in ("Accordion", "Tab"):
        titles = state.get("titles") or [""] * len(children)
        opened = [" open" if k == state.get("selected_index") else "" for k in range(len(children))]
        parts = zip(opened, titles, children, strict=True)
        inside = "".join(f"<details{o}><summary>{escape(t)}</summary>{child}</details>" for o, t, child in parts)
    elif children or kind in ("Box", "HBox", "VBox", "GridBox"):
        inside = "".join(children)
    elif kind in ("HTML", "HTMLMath", "Label"):
        inside = re.sub(r"<a href='\.\./[^>]*>(.*?)</a>", r"\1", value)  # files of the repository
    elif kind == "Image":
        (data,) = (buffer["data"] for buffer in model["buffers"] if buffer["path"] == ["value"])
        inside = f'<img alt="" src="data:image/{state["format"]};base64,{data}" style="max-width: 100%">'
    elif "Button" in kind or "accept" in state:
        inside = f"<button disabled>{label}</button>"
    elif kind == "Checkbox":
        inside = f'<label><input type="checkbox" disabled{" checked" if value else ""}> {label}</label>'
    elif "Slider" in kind:
        low, high, at = state["min"], state["max"], value
        if "Log" in kind:
            at = math.log(value, state["base"])
        knob = f'<input type="range" disabled min="{low}" max="{high}" step="any" value="{at}">'
        inside = f"<label>{label} {knob} {value:.4g}</label>"
    elif "_options_labels" in state:
        index = state.get("index")
        chosen = state["_options_labels"][index] if isinstance(index, int) else ""
        inside = f"<label>{label} <select disabled><option>{escape(chosen)}</option></select></label>"
    else:
        inside = f'<label>{label} <input disabled value="{escape(str(value if value is not None else ""))}"></label>'
    return f"{open_tag}{inside}</div>"


if __name__ == "__main__":
    if sys.argv[1:] == ["--store"]:
        sys.exit(store(SOURCES[0]))
    wanted = [path for path in SOURCES if not sys.argv[1:] or path.stem[:2] in sys.argv[1:]]
    for name, file in execute_all(wanted).items():
        print(f"{name}: {file}")
