"""SQL statements that read and change tables: parsing, table names in queries, procedures.

`statement_parser.py` splits a statement into clauses (`statements.py`) and keeps each expression
and query as the text that the caller wrote, so that the engine which evaluates them gives their
meaning. `table_references.py` finds the tables of a query. `procedures.py` runs `CALL` through the
methods of a table handle.
"""
