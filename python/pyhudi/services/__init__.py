"""Table services: what keeps a table in shape without changing its rows."""
