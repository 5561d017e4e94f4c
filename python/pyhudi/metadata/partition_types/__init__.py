"""Partition types of the metadata table, one module each; `registry.py` lists them."""
