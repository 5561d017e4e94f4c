"""Carrying out tasks: module-level functions that call the Rust core."""
