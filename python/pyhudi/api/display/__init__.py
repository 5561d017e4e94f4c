"""How tables and results look: HTML for notebooks, and the page of `HudiTable.report`."""
