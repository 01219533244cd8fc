"""Read tables from Excel workbooks and Parquet files, with the packages of "tables"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pandas as pd

from ..errors import InputError
from . import columns, formats
from .formats import Choose, Upload

APART = 200  # empty columns within one table; a wider gap separates a stray cell from it


def read_xlsx(file: Path | Upload, choose: Choose) -> pd.DataFrame:
    """Return the first sheet of a workbook as a table of text; ``choose`` is as for `formats.table_of`."""
    with formats.open_with("openpyxl", file, "an Excel workbook") as (openpyxl, content):
        sheet = openpyxl.load_workbook(content, read_only=True, data_only=True).worksheets[0]  # values, not formulas
        sheet.reset_dimensions()  # one far cell would make every row as wide
        return _from_rows(sheet.iter_rows(values_only=True), file.name, choose)


def read_xls(file: Path | Upload, choose: Choose) -> pd.DataFrame:
    """Return the first sheet of a workbook of Excel 97 to 2003, as `read_xlsx` does.

    In newer formats one far cell would take half a terabyte there; this format has at most 65,536 rows of 256 cells.
    """
    with formats.open_with("python_calamine", file, "an old Excel workbook") as (calamine, content):
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
    with formats.open_with("pyarrow.parquet", file, "a Parquet file") as (parquet, content):
        table = parquet.ParquetFile(content)
        if table.metadata.num_rows > formats.MOST_ROWS:  # before it is read into memory
            raise InputError(f"{file.name} has more than {formats.MOST_ROWS:,} rows. {formats.SPLIT}")
        frame = table.read().to_pandas(ignore_metadata=True)
    frame.attrs[columns.FILE] = file.name
    return frame


READERS = {".xlsx": read_xlsx, ".xlsm": read_xlsx, ".xls": read_xls}


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
