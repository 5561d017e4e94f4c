"""HTML of tables and results for notebooks, and the page of `HudiTable.report`."""
