"""The verbs that change rows: rows in, their file groups found, files written."""
