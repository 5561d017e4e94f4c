"""The locks that all writers of a table share, in any language."""
