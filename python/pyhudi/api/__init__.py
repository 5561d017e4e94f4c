"""The public objects: tables, scans, changes, diffs, builders.

Thin: the packages below do the work.
"""
