"""Names of the columns that Hudi adds to each row, and of the column that marks deletes."""

COMMIT_TIME = "_hoodie_commit_time"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"

IS_DELETED = "_hoodie_is_deleted"
"""A boolean column of the user. A row in which it is true deletes its key, in every table."""

META_COLUMNS = (
    COMMIT_TIME,
    "_hoodie_commit_seqno",
    RECORD_KEY,
    PARTITION_PATH,
    FILE_NAME,
)
