"""The properties and options of Hudi's timestamp key generator."""

from __future__ import annotations

PREFIX = "hoodie.keygen.timebased."
OLD_PREFIX = "hoodie.deltastreamer.keygen.timebased."

TYPE = PREFIX + "timestamp.type"
UNIT = PREFIX + "timestamp.scalar.time.unit"
INPUT_FORMAT = PREFIX + "input.dateformat"
INPUT_DELIMITER = PREFIX + "input.dateformat.list.delimiter.regex"
INPUT_ZONE = PREFIX + "input.timezone"
OUTPUT_FORMAT = PREFIX + "output.dateformat"
OUTPUT_ZONE = PREFIX + "output.timezone"
ZONE = PREFIX + "timezone"
PARSER_CLASS = "hoodie.keygen.datetime.parser.class"

TIME_OPTIONS = (
    TYPE,
    UNIT,
    INPUT_FORMAT,
    INPUT_DELIMITER,
    INPUT_ZONE,
    OUTPUT_FORMAT,
    OUTPUT_ZONE,
    ZONE,
)
"""Names that a table may store, or that its writer must pass: Hudi 0.15 does not store all of
them."""
