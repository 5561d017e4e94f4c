"""Indexes: where incoming keys already are."""
