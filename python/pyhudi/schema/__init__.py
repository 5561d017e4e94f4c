"""The rows of a table: columns and their ids, keys, payloads, filters, assigned values."""
