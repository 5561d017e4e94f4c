"""Engines: who runs parallel work. `protocol.py` states what they guarantee.

A task may run twice or fail after it wrote: file names carry a write token of the attempt, markers
name every started file, and only returned files are committed. One contract suite (`tests/engine`)
runs on all engines.
"""
