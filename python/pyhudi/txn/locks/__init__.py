"""The locks that all writers of a table share, whatever they are written in."""
