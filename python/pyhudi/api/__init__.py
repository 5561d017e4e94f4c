"""The public objects: tables, scans, changes, diffs, builders.

The code is thin: the packages below do the work.
"""
