"""Paths below one location, whatever store holds it."""
