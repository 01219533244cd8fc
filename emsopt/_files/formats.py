"""Read and write tables and JSON, also packed by gzip or in a .zip; read workbooks and Parquet files.

Workbooks and Parquet files need the extra "tables" of the package.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ..errors import InputError, MissingDependencyError, _validate
from ..errors._validate import quote
from . import columns as _columns

if TYPE_CHECKING:
    import pandas as pd

ColumnChooser: TypeAlias = Callable[[Sequence[str], Mapping[str, Sequence[object]]], Collection[str]]

FORMULA_PATTERN = re.compile(r"'*[=+\-@\t\r]")  # escaped ones too, so that reading restores what was written


def csv_text(header: Iterable[str], columns: Iterable[Iterable[object]]) -> str:
    """Return columns as comma-separated text, numbers with all digits; `read_csv` restores them unchanged."""
    from pandas import DataFrame

    return table_text(DataFrame(dict(enumerate(columns))).set_axis(list(header), axis=1))


def table_text(table: pd.DataFrame, *, index: bool = False) -> str:
    """Return a table as comma-separated text; cells that look like formulas are escaped, except in the index."""
    return table.map(_escape_formula).rename(columns=_escape_formula).to_csv(index=index, lineterminator="\n")


def _escape_formula(cell: object) -> object:
    """Return a cell, preceded by an apostrophe if a spreadsheet would take it for a formula."""
    return "'" + cell if isinstance(cell, str) and FORMULA_PATTERN.match(cell) else cell


def _unescape_formula(cell: str) -> str:
    """Return a cell without the apostrophe that `_escape_formula` put before it."""
    return cell[1:] if cell.startswith("'") and FORMULA_PATTERN.match(cell) else cell


# Which of these a truncated or unreadable file raises depends on where it is damaged.
READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
GZIP_START, ZIP_START = b"\x1f\x8b", b"PK\x03\x04"
MAX_BYTES = 2**28
MAX_ROWS = 2_000_000
MAX_JSON_BYTES = 2**26
SAMPLE_ROWS = 200  # rows from which columns are chosen: enough to see a form, quick to parse
SEPARATORS = ",;\t|^"
MAX_TITLE_ROWS = 10  # lines above the header, such as titles: further down, rows are data
HEADER_SHARE = 0.75  # of the cells or separators of other lines: some cells of a header may be blank
START_LENGTH = 2**17  # characters from which the separator is found, as the first lines suffice
MAX_EMPTY_COLUMNS = 200  # side by side within one table; a wider gap separates a stray cell from it
SPLIT_ADVICE = "Split it, for example by year."
# Numbers and times, which no header has.
VALUE_PATTERN = re.compile(r"[-+]?\d+[.,]\d+|\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ]+[\d:.]+.*)?")


@dataclass(frozen=True, eq=False)
class Upload:
    """A file in memory, which readers can use like a `Path`, by ``open``, or like an open file, by ``read``."""

    name: str
    content: bytes

    def open(self, _mode: str) -> io.BytesIO:
        """Return the content as a file opened in binary mode, whatever the mode."""
        return io.BytesIO(self.content)

    def read(self, _most: int = -1) -> bytes:
        """Return the whole content, also if it was read before."""
        return self.content


def name_inside(path: Path | Upload) -> str:
    """Return the name of the one file in a .zip that `read_content` has read."""
    with path.open("rb") as file:
        return _open_member(file, path.name)[0]


def _open_member(file: IO[bytes], name: str) -> tuple[str, IO[bytes]]:
    """Return the name of the one file in a .zip, and the file opened; files of macOS beside it do not count."""
    archive = zipfile.ZipFile(file)
    names = [name for name in archive.namelist() if not PurePosixPath(name).name.startswith(".")]
    names = [name for name in names if not name.endswith("/") and "__MACOSX" not in name]
    if len(names) != 1:
        raise InputError(f"{name} must hold one file; it holds {len(names)}. Unpack it, and give the one you need.")
    return PurePosixPath(names[0]).name, archive.open(names[0])


@contextmanager
def unpack(path: Path | Upload) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if it is gzip or .zip; damaged files raise one of `READ_ERRORS`."""
    with path.open("rb") as file:
        start = file.read(len(ZIP_START))  # what a file begins with tells more than its name
        file.seek(0)
        if start == ZIP_START:
            yield _open_member(file, path.name)[1]
        elif start.startswith(GZIP_START):
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file))
        else:
            yield file


def read_content(file: Path | Upload, most: int, remedy: str, packed: tuple[str, ...] = (".gz",)) -> bytes:
    """Return the content of a file, unpacked if its name ends in one of ``packed``; raise above ``most`` bytes."""
    try:
        with unpack(file) if file.name.lower().endswith(packed) else file.open("rb") as stream:
            content = stream.read(most + 1)  # one more byte tells that there are more
    except READ_ERRORS as error:
        raise InputError(f"{file.name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(content) > most:
        raise InputError(f"{file.name} has more than {most / 2**20:g} MB, the maximum that is read. {remedy}")
    return content


def _read_text(file: Path | Upload, most: int, remedy: str, *, forgiving: bool = False) -> str:
    """Return the text of a UTF-8 file, or if ``forgiving`` of a UTF-16 or Windows-1252 file; ``most`` is in bytes."""
    content = read_content(file, most, remedy)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if wide and forgiving else "utf-8").lstrip("\ufeff")
    except UnicodeDecodeError as error:
        if forgiving:
            return content.decode("cp1252", errors="replace")  # this never fails
        where = f"{error.reason} at byte {error.start}"
        raise InputError(f"{file.name} is not UTF-8 text ({where}). Save it as UTF-8.") from error


def read_csv(path: Path | Upload, *, labelled: bool = False, choose: ColumnChooser | None = None) -> pd.DataFrame:
    """Read a comma-separated file as a table of text; with ``labelled``, the first column is the index.

    With ``choose`` (`to_table`), other separators and encodings, and lines above the header are allowed.
    """
    text = _read_text(path, MAX_BYTES, SPLIT_ADVICE, forgiving=choose is not None)
    if choose is None:
        table = to_table(_read_records(path.name, text, ","), path.name).rename(columns=_unescape_formula)
        table.isetitem(0, table.iloc[:, 0].map(_unescape_formula).to_numpy())  # names stand here and in the header
    else:
        table = to_table(drop_title_rows(_read_records(path.name, text, _find_separator(text))), path.name, choose)
    return table.set_axis(table.iloc[:, 0].to_numpy(), axis=0).iloc[:, 1:] if labelled else table


def to_table(records: Iterator[tuple[int, list[str]]], name: str, choose: ColumnChooser | None = None) -> pd.DataFrame:
    """Return rows of text, given as (line number, cells) with the header first, as a table.

    For tables of other programs, ``choose`` takes the names of all columns and the first `SAMPLE_ROWS` cells of each
    by name, and returns the names of the columns to keep. A row of units below the header and footers become blank.
    """
    from pandas import DataFrame

    first_line, header = next(records, (0, []))
    if not header:
        raise InputError(f"{name} is empty; its first line must name the columns.")
    places = list(range(len(header)))
    if choose is not None:
        _check_header(header, name)
        places, records = _choose_columns(header, records, choose)
    elif len(header) == 1 and {";", "\t"}.intersection(header[0]):
        raise InputError(f"{name} must be separated by commas; its first line is {quote(header[0])}.")
    rows: list[list[str]] = []
    for number, row in records:
        if len(row) != len(header):
            raise InputError(f"{name}, line {number}: expected {len(header)} cells, but got {len(row)}.")
        if len(rows) == MAX_ROWS:
            raise InputError(f"{name} has more than {MAX_ROWS:,} rows. {SPLIT_ADVICE}")
        rows.append([row[k] for k in places])
    table = DataFrame(rows, columns=[header[k] for k in places], dtype=object)
    table.attrs |= {_columns.FILE_KEY: name, _columns.HEADER_KEY: first_line}
    table.attrs[_columns.NAMES_KEY] = _columns.list_columns(header)
    return table


def _choose_columns(
    header: list[str], records: Iterator[tuple[int, list[str]]], choose: ColumnChooser
) -> tuple[list[int], Iterator[tuple[int, list[str]]]]:
    """Return the positions of the columns to keep, and all rows, those with units and footers blanked."""
    first = list(islice(records, SAMPLE_ROWS))
    digits = [re.search("[0-9]", "".join(row)) is not None for _, row in first[:2]]
    if digits == [False, True]:  # a row of units of measurement, which is no data
        first[0] = (first[0][0], [""] * len(header))
    kept = choose(header, {key: [row[k] for _, row in first if k < len(row)] for k, key in enumerate(header)})
    return _columns.positions_of(header, kept), _blank_footers(chain(first, records), header)


def _check_header(header: list[str], name: str) -> None:
    """Raise if several cells of the first line of a file are decimal numbers or dates, which no header has."""
    values = [cell for cell in header if VALUE_PATTERN.fullmatch(cell.strip())]
    if len(values) > 1:
        raise InputError(
            f"{name} has no header: its first line holds values, such as {quote(values[0])} and {quote(values[1])}. "
            "Put a line above it that names the columns, such as time,lon,lat."
        )


def _blank_footers(records: Iterable[tuple[int, list[str]]], header: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield rows, with repeated headers and footers blanked. Footers have at most one cell, or are short and last."""
    blank, full, short = [""] * len(header), False, None
    for number, row in records:
        if full and (row == header or sum(map(bool, map(str.strip, row))) <= 1 < len(header)):
            row = blank
        elif full and len(row) < len(header):
            short, row = short or (number, row), blank
        elif short is not None:  # rows follow, so the short row was no footer but an error, which the caller reports
            number, row = short
        full = full or len(row) == len(header)
        yield number, row


def drop_title_rows(records: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows from the header on: the first row with nearly as many filled cells as the rows below it."""
    above = list(islice(records, 2 * MAX_TITLE_ROWS))
    filled = np.array([sum(bool(cell.strip()) for cell in row) for _, row in above])
    below = [filled[k + 1 :] for k in range(len(above))]
    usual = [max(2.0, HEADER_SHARE * np.median(cells)) if len(cells) else 2.0 for cells in below]
    start = np.flatnonzero((filled >= usual)[: MAX_TITLE_ROWS + 1])
    return chain(above[int(start[0]) if len(start) else 0 :], records)


def _find_separator(text: str) -> str:
    """Return the separator of cells: as named in a first line such as ``sep=;``, else the most frequent in the header.

    The header is the first line whose separator occurs at least as often in the next line and nearly as often in most.
    """
    start = [line for line in text[:START_LENGTH].split("\n") if line.strip()][: 2 * MAX_TITLE_ROWS]
    if start and (said := re.fullmatch(r"sep=(.)\s*", start[0])):
        return said[1]
    for line, below in zip(start, [*start[1:], *start[-1:]], strict=True):
        mark = max(SEPARATORS, key=line.count)
        usual = HEADER_SHARE * float(np.median([other.count(mark) for other in start]))
        if max(1.0, usual) <= line.count(mark) <= below.count(mark):
            return mark
    return ","


def _read_records(name: str, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its last line, cells) for each row of separated values that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)  # strict: open quotes raise
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        hint = " Is a quotation mark left open?" if "limit" in str(error) else ""
        raise InputError(f"{name}, line {reader.line_num}: {error}.{hint}") from error


def read_json(path: Path | Upload) -> dict[str, Any]:
    """Read a JSON file that contains one object, as a dict; raise if it is anything else, or too large."""
    text = _read_text(path, MAX_JSON_BYTES, "Split it, or save a table of points as CSV.")
    try:
        # an int too large for a float becomes infinite, which every check refuses
        number = lambda digits: int(digits) if len(digits) < 300 else float(digits)
        content = json.loads(text, object_pairs_hook=_unique_keys, parse_int=number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path.name} is not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path.name} must hold one JSON object, {{...}}; got a {type(content).__name__}.")
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries of a JSON object as a dict; raise if a key occurs twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError(f"the entry {quote(_validate.first_repeated(key for key, _ in pairs))} is there twice")
    return result


@contextmanager
def open_with(module: str, file: Path | Upload, kind: str, extra: str = "tables") -> Iterator[tuple[Any, io.BytesIO]]:
    """Yield an optional module and the content of a file; errors that the module raises become an `InputError`."""
    try:
        package = importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise MissingDependencyError(
            f"{file.name} needs {name}, which is not installed: pip install 'emsopt[{extra}]'. Or save it as CSV."
        ) from error
    content = io.BytesIO(read_content(file, MAX_BYTES, SPLIT_ADVICE))
    try:
        yield package, content
    except InputError:
        raise
    except Exception as error:  # these packages raise many kinds of errors for damaged files
        raise InputError(f"{file.name} is not {kind}, or is damaged: {error}.") from error


def read_xlsx(file: Path | Upload, choose: ColumnChooser) -> pd.DataFrame:
    """Return the first sheet of a workbook as a table of text; ``choose`` is as for `to_table`."""
    with open_with("openpyxl", file, "an Excel workbook") as (openpyxl, content):
        sheet = openpyxl.load_workbook(content, read_only=True, data_only=True).worksheets[0]  # values, not formulas
        sheet.reset_dimensions()  # one far cell would make every row as wide
        return _from_rows(sheet.iter_rows(values_only=True), file.name, choose)


def read_xls(file: Path | Upload, choose: ColumnChooser) -> pd.DataFrame:
    """Return the first sheet of a workbook of Excel 97 to 2003, as `read_xlsx` does; refuse newer formats."""
    with open_with("python_calamine", file, "an old Excel workbook") as (calamine, content):
        # a newer format, however named, in which one distant cell could take half a terabyte
        if content.read(4) != b"\xd0\xcf\x11\xe0":
            raise InputError(f"{file.name} is no workbook of Excel 97 to 2003. Save the sheet as .xlsx or .csv.")
        content.seek(0)
        sheet = calamine.CalamineWorkbook.from_filelike(content).get_sheet_by_index(0)
        return _from_rows(sheet.to_python(skip_empty_area=False), file.name, choose)  # else rows are misnumbered


def _from_rows(rows: Iterable[Iterable[object]], name: str, choose: ColumnChooser) -> pd.DataFrame:
    """Return the rows of a sheet as a table of text."""
    cells = ((k, [_columns.text(cell).strip() for cell in row]) for k, row in enumerate(rows, 1))
    return to_table(_pad_rows(drop_title_rows(row for row in cells if any(row[1])), name), name, choose)


def read_parquet(file: Path | Upload) -> pd.DataFrame:
    """Return a Parquet file as a table; an index that pandas keeps there becomes columns."""
    with open_with("pyarrow.parquet", file, "a Parquet file") as (parquet, content):
        table = parquet.ParquetFile(content)
        if table.metadata.num_rows > MAX_ROWS:  # before it is read into memory
            raise InputError(f"{file.name} has more than {MAX_ROWS:,} rows. {SPLIT_ADVICE}")
        frame = table.read().to_pandas(ignore_metadata=True)
    frame.attrs[_columns.FILE_KEY] = file.name
    return frame


WORKBOOK_READERS = {".xlsx": read_xlsx, ".xlsm": read_xlsx, ".xls": read_xls}


def _pad_rows(records: Iterable[tuple[int, list[str]]], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows padded or cut to the filled length of the first row; those with values further right stay longer."""
    width = 0
    for number, row in records:
        filled = [k for k, cell in enumerate(row) if cell]
        if not width:
            if far := [b for a, b in pairwise(filled) if b > a + MAX_EMPTY_COLUMNS]:
                raise InputError(f"{name}: column {far[0] + 1:,} has a name, far from the others. Delete it.")
            width = filled[-1] + 1
        yield number, [*row[: max(width, filled[-1] + 1)], *[""] * (width - len(row))]
