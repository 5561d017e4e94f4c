"""HTML of tables, scans and results for notebooks."""
