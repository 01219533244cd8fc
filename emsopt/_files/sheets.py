"""Read tables from Excel workbooks, Parquet files and geographic files, with the packages of "tables" and "maps"."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError, MissingDependencyError
from . import columns, formats
from .formats import Upload

if TYPE_CHECKING:
    from .formats import Choose

APART = 200  # empty columns within one table; a wider gap separates a stray cell from it


def read_xlsx(file: Path | Upload, choose: Choose) -> pd.DataFrame:
    """Return the first sheet of a workbook as a table of text; ``choose`` is as for `formats.table_of`."""
    with _package("openpyxl", file, "an Excel workbook") as (openpyxl, content):
        sheet = openpyxl.load_workbook(content, read_only=True, data_only=True).worksheets[0]  # values, not formulas
        sheet.reset_dimensions()  # one far cell would make every row as wide
        return _from_rows(sheet.iter_rows(values_only=True), file.name, choose)


def read_xls(file: Path | Upload, choose: Choose) -> pd.DataFrame:
    """Return the first sheet of a workbook of Excel 97 to 2003, as `read_xlsx` does.

    In newer formats one far cell would take half a terabyte there; this format has at most 65,536 rows of 256 cells.
    """
    with _package("python_calamine", file, "an old Excel workbook") as (calamine, content):
        if content.read(4) != b"\xd0\xcf\x11\xe0":  # a newer format, however named
            raise InputError(f"{file.name} is no workbook of Excel 97 to 2003. Save the sheet as .xlsx or .csv.")
        content.seek(0)
        sheet = calamine.CalamineWorkbook.from_filelike(content).get_sheet_by_index(0)
        return _from_rows(sheet.to_python(skip_empty_area=False), file.name, choose)  # else rows are misnumbered


def _from_rows(rows: Iterable[Iterable[object]], name: str, choose: Choose) -> pd.DataFrame:
    """Return the rows of a sheet as a table of text."""
    cells = ((k, [columns.text(cell).strip() for cell in row]) for k, row in enumerate(rows, 1))
    return formats.table_of(_even(formats.from_header(row for row in cells if any(row[1])), name), name, choose)


def read_parquet(file: Path | Upload) -> pd.DataFrame:
    """Return a Parquet file as a table; an index that pandas keeps there becomes columns."""
    with _package("pyarrow.parquet", file, "a Parquet file") as (parquet, content):
        table = parquet.ParquetFile(content)
        if table.metadata.num_rows > formats.MOST_ROWS:  # before it is read into memory
            raise InputError(f"{file.name} has more than {formats.MOST_ROWS:,} rows. {formats.SPLIT}")
        frame = table.read().to_pandas(ignore_metadata=True)
    frame.attrs[columns.FILE] = file.name
    return frame


def read_layer(file: Path | Upload) -> Any:
    """Return the only layer of a shapefile or GeoPackage as a GeoDataFrame, or as a DataFrame without geometry.

    An `Upload` cannot be a shapefile, which consists of several files.
    """
    if isinstance(file, Upload) and file.name.lower().endswith(".shp"):
        raise InputError(f"{file.name} is one of several files of a shapefile. Give its path, or save a GeoPackage.")
    with _package("geopandas", file, "a geographic file", "maps") as (geopandas, content), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the name of content without a file
        source = content if isinstance(file, Upload) else file
        layers = geopandas.list_layers(source)["name"].tolist()
        if len(layers) != 1:
            got = ", ".join(layers[:9]) or "none"
            raise InputError(f"{file.name} must have one layer; it has {got}. Save the one you need by itself.")
        frame = geopandas.read_file(source)
    frame.attrs[columns.FILE] = file.name
    return frame


LAYERS = (".shp", ".gpkg", ".fgb")
FRAMES = {".parquet": read_parquet} | dict.fromkeys(LAYERS, read_layer)
READERS = {".xlsx": read_xlsx, ".xlsm": read_xlsx, ".xls": read_xls}


@contextmanager
def _package(module: str, file: Path | Upload, kind: str, extra: str = "tables") -> Iterator[tuple[Any, io.BytesIO]]:
    """Import an optional module, and open a file for it; errors that it raises become an `InputError`."""
    try:
        package = importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise MissingDependencyError(
            f"{file.name} needs {name}, which is not installed: pip install 'emsopt[{extra}]'. Or save it as CSV."
        ) from error
    content = io.BytesIO(formats.content_of(file, formats.MOST_BYTES, formats.SPLIT))
    try:
        yield package, content
    except InputError:
        raise
    except Exception as error:  # these packages raise many kinds of errors for damaged files
        raise InputError(f"{file.name} is not {kind}, or is damaged: {error}.") from error


def _even(records: Iterable[tuple[int, list[str]]], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows of the length of the first without trailing blanks; rows with values further right stay longer."""
    width = 0
    for number, row in records:
        filled = [k for k, cell in enumerate(row) if cell]
        if not width:
            if far := [b for a, b in pairwise(filled) if b > a + APART]:
                raise InputError(f"{name}: column {far[0] + 1:,} has a name, far from the others. Delete it.")
            width = filled[-1] + 1
        yield number, [*row[: max(width, filled[-1] + 1)], *[""] * (width - len(row))]
