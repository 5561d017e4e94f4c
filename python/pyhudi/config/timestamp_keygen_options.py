"""The properties and options of Hudi's timestamp key generator."""

from __future__ import annotations

from pyhudi.config.option_parsing import option

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

TIME_KEYS = (
    option(TYPE, "what the column stores"),
    option(UNIT, "the unit of `SCALAR`"),
    option(INPUT_FORMAT, "the formats of strings"),
    option(INPUT_DELIMITER, "what separates these formats: a regular expression"),
    option(OUTPUT_FORMAT, "the format of the directory"),
    option((ZONE, INPUT_ZONE, OUTPUT_ZONE), "time zones", default="UTC in new tables"),
)
TIME_OPTIONS = tuple(name for each in TIME_KEYS for name in each.names)
"""Names that a table may store, or that its writer must pass: Hudi 0.15 does not store all of
them."""
