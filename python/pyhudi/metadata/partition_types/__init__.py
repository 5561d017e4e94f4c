"""Kinds of partitions of the metadata table, a file each; `registry.py` names them."""
