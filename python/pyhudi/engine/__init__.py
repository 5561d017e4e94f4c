"""Engines that run parallel work. `protocol.py` defines their guarantees.

A task may run twice or fail after it wrote: file names carry a write token of the attempt, markers
name every started file, and only returned files are committed. One contract suite (`tests/engine`)
runs on all engines.
"""
