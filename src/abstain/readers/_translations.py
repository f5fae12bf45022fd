"""Files that are converted before they are read: text in UTF-16 to UTF-8, and the sheet of a workbook to CSV.

Whole numbers of a workbook are written without a decimal point, dates in ISO 8601, and empty cells as empty text. The
hash in the provenance is that of the workbook.
"""

from __future__ import annotations

import csv
import io
import zipfile
from typing import TYPE_CHECKING, Any

from abstain.errors import ArgumentError, FormatError
from abstain.readers._formats import OLE, UTF_16, ZIP

if TYPE_CHECKING:
    from abstain._files import SourceFile

# Each kind of workbook has one of these parts, and no log has any.
_WORKBOOK_PARTS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}
# The most bytes that the parts of a workbook may have when decompressed.
_MOST_BYTES = 1 << 28


def translate(file: SourceFile, beginning: bytes) -> bool:
    """Convert a file if its beginning shows that this is necessary; return whether it was converted."""
    if beginning.startswith(UTF_16):
        file.translate(lambda content: _text(content, file))
        return True
    if beginning.startswith(OLE) or (beginning.startswith(ZIP) and _is_workbook(file)):
        file.translate(lambda content: _sheet(content, file))
        return True
    return False


def _is_workbook(file: SourceFile) -> bool:
    try:
        with file.open() as opened, zipfile.ZipFile(opened) as archive:
            return not _WORKBOOK_PARTS.isdisjoint(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return False  # the reader of logs reports the problem


def _text(content: bytes, path: SourceFile) -> bytes:
    try:
        return content.decode("utf-16").encode()
    except UnicodeError:
        raise FormatError(f"{path}: begins like UTF-16 text, but is not; save it as UTF-8") from None


def _sheet(content: bytes, path: SourceFile) -> bytes:
    try:
        import python_calamine  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ArgumentError(
            f"{path}: is a workbook; save the sheet as CSV, or install the reader (pip install 'abstain[excel]')"
        ) from None
    _check_size(content, path)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheets = {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
    except Exception:
        raise FormatError(f"{path}: the workbook is damaged, or protected by a password") from None
    filled = [name for name, rows in sheets.items() if rows]
    if len(filled) != 1:
        raise FormatError(
            f"{path}: is a workbook with {len(filled)} filled sheets; save the right one as CSV"
        )
    written = io.StringIO()
    csv.writer(written).writerows([_cell(cell) for cell in row] for row in sheets[filled[0]])
    return written.getvalue().encode("utf-8", "surrogatepass")


def _check_size(content: bytes, path: SourceFile) -> None:
    if not content.startswith(ZIP):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        raise FormatError(f"{path}: the workbook is damaged or cut off") from None
    if size > _MOST_BYTES:
        raise FormatError(
            f"{path}: the workbook expands to {size >> 20:,} MiB; save the sheet as CSV or Parquet"
        )


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
