"""A table's configuration: the content of `.hoodie/hoodie.properties`, with Hudi's defaults.

`TableConfig` is a frozen view; `properties_file.py` changes a table's file, `merge_mode.py` has the
merge rules. Keys and defaults: Hudi 1.2.0 `HoodieTableConfig`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyhudi.cached_property import cached_property
from pyhudi.clock import Clock, SystemClock, Zone, parse_zone
from pyhudi.config import property_names as names
from pyhudi.config.bootstrap import check_bootstrap
from pyhudi.config.merge_mode import (
    DELETE_FIELD,
    DELETE_MARKER,
    MergeConfig,
    MergeMode,
    delete_rule,
    find_unsupported_property,
    merge_config,
)
from pyhudi.config.table_version import TableVersion, table_version
from pyhudi.config.timeline_layout import TimelineLayout
from pyhudi.errors import ConfigError, CorruptTable, UnsupportedTableFeature
from pyhudi.storage import properties_file
from pyhudi.storage.prefetch import forget
from pyhudi.storage.properties import (
    CHECKSUM,
    DATABASE_NAME,
    TABLE_NAME,
    checksum,
    parse_properties,
    render_properties,
    with_checksum_comment,
)
from pyhudi.storage.storage import Storage

__all__ = ["MergeConfig", "MergeMode", "TableConfig", "TableType", "find_unsupported_merge"]

TableType = Literal["COPY_ON_WRITE", "MERGE_ON_READ"]
COPY_ON_WRITE: TableType = "COPY_ON_WRITE"
MERGE_ON_READ: TableType = "MERGE_ON_READ"

_VERSION_DIGITS = 4

_KNOWN_VALUES = {
    names.BASE_FILE_FORMAT: ("PARQUET", "ORC"),
    names.LOG_FILE_FORMAT: ("HOODIE_LOG",),
    names.SEVERAL_FORMATS: ("FALSE", "TRUE"),
    names.TABLE_FORMAT: ("NATIVE",),
}
"""Properties with a limited set of supported values; the first is the default."""
_USE_HUDI = "Use Apache Hudi for this table."


@dataclass(frozen=True)
class TableConfig:
    """The properties of a table. A missing property reads as Hudi's default for readers."""

    properties: Mapping[str, str]
    """All properties in the order of the file, including those that pyhudi does not know."""
    handle_delete_rule: tuple[str, str] | None = None
    """Delete field and marker from the options of a handle, if no property has them."""

    @classmethod
    def load(
        cls, storage: Storage, clock: Clock | None = None, assumed: TableConfig | None = None
    ) -> TableConfig:
        """Read a table's properties.

        Raises `TableNotFound` without a table, `CorruptTable` for damaged or incomplete properties,
        `UnsupportedTableFeature` for a table that pyhudi cannot read.

        assumed: the properties that the prefetch assumed. If they have changed, prefetched data are
        dropped, because they may be older than the change.
        """
        config = cls(properties_file.read_config(storage, clock or SystemClock()))
        if assumed is not None and assumed.properties != config.properties:
            forget()
        config.check_readable()
        return config

    @classmethod
    def parse(cls, data: bytes, file: str = properties_file.FILE) -> TableConfig:
        """Return the configuration of a properties file; only its syntax is checked."""
        return cls(parse_properties(data, file))

    def render(self) -> bytes:
        """Return the bytes of a properties file with these properties and the right checksum."""
        text = render_properties({**self.properties, CHECKSUM: checksum(self.properties)})
        return with_checksum_comment(text)

    def save_new(self, storage: Storage, clock: Clock) -> None:
        """Create a table with this configuration. Raises `ConfigError` if one exists."""
        properties_file.create_config(storage, self.properties, clock)

    def update(
        self,
        storage: Storage,
        changes: Mapping[str, str],
        clock: Clock,
        *,
        removed: Collection[str] = (),
    ) -> TableConfig:
        """Change properties of the table on storage, if they are these, and return all of them.

        See `update_config`; raises `CommitConflict` if the stored ones differ.
        """
        after = properties_file.update_config(
            storage, changes, clock, removed=removed, before=self.properties
        )
        return TableConfig(after, self.handle_delete_rule)

    def check_readable(self) -> None:
        """Raise `UnsupportedTableFeature` naming the property that rules out reading.

        Merge rules are not checked here but by `find_unsupported_merge`.
        """
        _ = self.table_type
        layout = self.version.layout.version
        if self.properties.get(names.LAYOUT_VERSION, str(layout)) != str(layout):
            stored = self.properties[names.LAYOUT_VERSION]
            msg = f"{names.LAYOUT_VERSION} is {stored} in a table of version {self.version.code}"
            raise UnsupportedTableFeature(msg, hint=_USE_HUDI)
        for key, supported in _KNOWN_VALUES.items():
            value = self.properties.get(key) or supported[0]
            if value.upper() not in supported:
                msg = f"{key} is {value}; pyhudi supports {' and '.join(supported)}"
                raise UnsupportedTableFeature(msg, hint=_USE_HUDI)
        for key in (names.TIMELINE_PATH, names.HISTORY_PATH, names.ARCHIVE_FOLDER):
            _check_inside(key, self.properties.get(key, ""))
        check_bootstrap(self.properties)

    @cached_property
    def name(self) -> str:
        """The table's name."""
        return self._require(TABLE_NAME)

    @cached_property
    def database(self) -> str:
        """The database's name, or ""."""
        return self.properties.get(DATABASE_NAME, "")

    @cached_property
    def table_type(self) -> TableType:
        """COPY_ON_WRITE or MERGE_ON_READ."""
        stored = self.properties.get(names.TABLE_TYPE) or COPY_ON_WRITE
        if stored == COPY_ON_WRITE:
            return COPY_ON_WRITE
        if stored == MERGE_ON_READ:
            return MERGE_ON_READ
        msg = f"{names.TABLE_TYPE} is {stored}; pyhudi knows {COPY_ON_WRITE} and {MERGE_ON_READ}"
        raise UnsupportedTableFeature(msg)

    @property
    def is_merge_on_read(self) -> bool:
        """Whether updates go to log files."""
        return self.table_type == MERGE_ON_READ

    @cached_property
    def version(self) -> TableVersion:
        """The rules of the table's version."""
        code = self._require(names.TABLE_VERSION)
        if not code.isdecimal() or len(code) > _VERSION_DIGITS:
            raise _bad_value(names.TABLE_VERSION, code)
        return table_version(int(code))

    @cached_property
    def layout(self) -> TimelineLayout:
        """The timeline's layout, with the directory that this table names."""
        layout = self.version.layout
        folder = self.properties.get(names.TIMELINE_PATH, "").strip("/")
        if not layout.completion_in_name or not folder:
            return layout
        return replace(layout, folder=f"{properties_file.FOLDER}/{folder}")

    @property
    def timeline_path(self) -> str:
        """Directory of the active timeline, relative to the table."""
        return self.layout.folder

    @property
    def history_folder(self) -> str:
        """Directory of the archived timeline, relative to the table."""
        if not self.layout.completion_in_name:
            folder = self.properties.get(names.ARCHIVE_FOLDER) or "archived"
            return f"{properties_file.FOLDER}/{folder.strip('/')}"
        folder = self.properties.get(names.HISTORY_PATH) or "history"
        return f"{self.layout.folder}/{folder.strip('/')}"

    @cached_property
    def timezone(self) -> Zone:
        """Zone in which instants are rendered."""
        try:
            return parse_zone(self.properties.get(names.TIMEZONE) or "LOCAL")
        except ConfigError as error:
            raise _bad_value(names.TIMEZONE, self.properties[names.TIMEZONE]) from error

    @cached_property
    def record_key_fields(self) -> tuple[str, ...]:
        """Fields of the record key; empty if Hudi generates the keys."""
        return self._names(names.RECORD_KEY_FIELDS)

    @cached_property
    def partition_fields(self) -> tuple[str, ...]:
        """Fields of the partition path, without the types of custom key generators."""
        return tuple(field.partition(":")[0] for field in self._names(names.PARTITION_FIELDS))

    @cached_property
    def ordering_fields(self) -> tuple[str, ...]:
        """Fields whose values order records of one key, under either property name."""
        return self._names(names.ORDERING_FIELDS) or self._names(names.PRECOMBINE_FIELD)

    @cached_property
    def key_generator(self) -> str:
        """Type of the key generator: a key of `KEY_GENERATOR_CLASSES`, or USER_PROVIDED."""
        class_name = self.properties.get(names.KEY_GENERATOR_CLASS)
        if class_name:
            return names.KEY_GENERATOR_TYPES.get(class_name, "USER_PROVIDED")
        generator_type = self.properties.get(names.KEY_GENERATOR_TYPE)
        return generator_type.upper() if generator_type else self._infer_key_generator()

    @cached_property
    def merge(self) -> MergeConfig:
        """The rules for merging records of one key."""
        stored = merge_config(
            self.properties, self.version, has_ordering=bool(self.ordering_fields)
        )
        if self.handle_delete_rule is None:
            return stored
        field, marker = self.handle_delete_rule
        return replace(stored, delete_field=field, delete_marker=marker)

    def with_delete_marks(self, options: Mapping[str, str]) -> TableConfig:
        """Return the configuration with the delete rule of a handle's options.

        Hudi's writers get the rule with each write. Raises `ConfigError` if the table has another
        rule.
        """
        rule = delete_rule(options)
        if rule is None:
            return self
        own = (self.merge.delete_field, self.merge.delete_marker)
        if rule == own:
            return self
        if own != (None, None):
            msg = f"{DELETE_FIELD} and {DELETE_MARKER} are {rule}, but the table has {own}"
            raise ConfigError(msg, hint="Leave both options out.")
        return replace(self, handle_delete_rule=rule)

    @property
    def hive_style(self) -> bool:
        """Whether partition directories are named `field=value`."""
        return self._flag(names.HIVE_STYLE)

    @property
    def url_encode(self) -> bool:
        """Whether values in partition paths are URL-encoded."""
        return self._flag(names.URL_ENCODE)

    @property
    def slash_separated_dates(self) -> bool:
        """Whether dates in partition paths have `/` instead of `-` (Hudi 1.2)."""
        return self._flag(names.SLASH_DATES)

    @property
    def drop_partition_columns(self) -> bool:
        """Whether data files omit the partition columns."""
        return self._flag(names.DROP_PARTITION_COLUMNS)

    @property
    def populate_meta_fields(self) -> bool:
        """Whether records have their `_hoodie_` fields."""
        return self._flag(names.META_FIELDS, default=True)

    @property
    def base_file_format(self) -> str:
        """Format of base files, upper case."""
        return (self.properties.get(names.BASE_FILE_FORMAT) or "PARQUET").upper()

    @property
    def base_extension(self) -> str | None:
        """Extension of base files, None if each file has its own format."""
        return None if self._flag(names.SEVERAL_FORMATS) else self.base_file_format.lower()

    @property
    def not_parquet(self) -> str | None:
        """The property that allows base files other than Parquet, and its value; else None."""
        if self._flag(names.SEVERAL_FORMATS):
            return f"{names.SEVERAL_FORMATS} is true"
        if self.base_file_format != "PARQUET":
            return f"{names.BASE_FILE_FORMAT} is {self.base_file_format}"
        return None

    @cached_property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Partitions of the metadata table that readers may use."""
        return self._names(names.METADATA_PARTITIONS)

    @property
    def cdc_enabled(self) -> bool:
        """Whether writers log changes."""
        return self._flag(names.CDC_ENABLED)

    @property
    def cdc_mode(self) -> str:
        """Content of CDC files, upper case."""
        return (self.properties.get(names.CDC_MODE) or "DATA_BEFORE_AFTER").upper()

    @property
    def bootstrap_path(self) -> str | None:
        """Directory of the files that the table was bootstrapped from, None for other tables."""
        return self.properties.get(names.BOOTSTRAP_PATH) or None

    @property
    def create_schema(self) -> str | None:
        """The Avro schema of the table's creation, without meta fields."""
        return self.properties.get(names.CREATE_SCHEMA) or None

    def _require(self, key: str) -> str:
        value = self.properties.get(key)
        if not value:
            msg = f"{properties_file.FILE} has no {key}"
            hint = "Add the property, or restore the file from a copy."
            raise CorruptTable(msg, file=properties_file.FILE, hint=hint)
        return value

    def _names(self, key: str) -> tuple[str, ...]:
        parts = (part.strip() for part in self.properties.get(key, "").split(","))
        return tuple(part for part in parts if part)

    def _flag(self, key: str, *, default: bool = False) -> bool:
        value = self.properties.get(key) or str(default)
        return value.strip().lower() == "true"

    def _infer_key_generator(self) -> str:
        fields: Sequence[str] = self._names(names.PARTITION_FIELDS)
        if not fields:
            return "NON_PARTITION"
        if ":" in fields[0]:
            return "CUSTOM"
        return "SIMPLE" if len(fields) == 1 and len(self.record_key_fields) <= 1 else "COMPLEX"


def find_unsupported_merge(config: TableConfig) -> str | None:
    """Return the property, with its value, that prevents merging records; None if none does.

    It matters only if records are merged: copy-on-write tables are read without merging.
    """
    return find_unsupported_property(config.merge)


def _check_inside(key: str, folder: str) -> None:
    """Raise `UnsupportedTableFeature` for a directory outside the table's own.

    Hudi resolves the path as Hadoop does. Interpreted below `.hoodie`, the table would have no
    rows.
    """
    if folder.startswith("/") or ":" in folder or ".." in folder.split("/"):
        within = properties_file.FOLDER
        msg = f"{key} is {folder}: pyhudi expects timelines below the table's {within}"
        raise UnsupportedTableFeature(msg, hint=f"Give {key} as a path relative to it.")


def _bad_value(key: str, value: str) -> CorruptTable:
    msg = f"{properties_file.FILE}: {key} is {value!r}"
    return CorruptTable(msg, file=properties_file.FILE)
