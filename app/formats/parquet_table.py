"""Tables as Parquet, in bounded memory. Needs pyarrow, which a serving installation leaves out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, BinaryIO

from app.errors import InvalidTable, NotInstalled
from app.formats.score_row import Column

Row = dict[str, object]
BATCH_ROWS = 4096
PANDAS_INDEX = re.compile(r"__index_level_\d+__", re.ASCII)  # the row numbers that pandas adds when it writes a frame


class ParquetReader:
    def __init__(self, file: BinaryIO) -> None:
        pyarrow, parquet = _libraries()
        try:
            self._table = parquet.ParquetFile(file)
        except pyarrow.ArrowInvalid as error:
            raise InvalidTable(["The file is not Parquet."]) from error
        self._faults = (pyarrow.ArrowException, OSError)
        names = self._table.schema_arrow.names
        self.columns: list[str] = [name for name in names if not PANDAS_INDEX.fullmatch(name)]
        self._rows = max(int(self._table.metadata.num_rows), 1)
        self._seen = 0

    def __iter__(self) -> Iterator[Row]:
        try:
            for batch in self._table.iter_batches(BATCH_ROWS, columns=self.columns):
                yield from batch.to_pylist()
                self._seen += int(batch.num_rows)
        except self._faults as error:
            raise InvalidTable(["The file is damaged: not all of its rows can be read."]) from error

    def share(self) -> float:
        return self._seen / self._rows


class ParquetWriter:
    def __init__(self, file: BinaryIO, columns: Sequence[Column]) -> None:
        self._pyarrow, parquet = _libraries()
        types = {"text": "string", "number": "float64", "integer": "int64"}
        fields = [(column.name, self._pyarrow.type_for_alias(types[column.kind])) for column in columns]
        self._schema = self._pyarrow.schema(fields)
        self._table = parquet.ParquetWriter(file, self._schema)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._table.write_batch(self._pyarrow.RecordBatch.from_pylist(list(rows), schema=self._schema))

    def close(self) -> None:
        self._table.close()


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise NotInstalled("pyarrow for Parquet files") from error
    return pyarrow, pyarrow.parquet
