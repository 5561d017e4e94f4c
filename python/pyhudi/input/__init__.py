"""Data that users hand over, on its way to a table's columns.

1. `batches` reads any supported input as Arrow record batches, with `python_objects` for dicts,
   lists and columns of objects.
2. `decode_encodings` turns dictionaries, views and run-end encodings into plain columns.
3. `conform` casts the columns to the table's, with `exact_casts`,
   `required_fields` and `vectors`, and never changes a value.

The package knows Arrow and the names of Hudi's columns. It does not know tables, keys or files.
"""
