"""Changing a table's version, and comparing a table with itself. Nothing here happens unasked."""
