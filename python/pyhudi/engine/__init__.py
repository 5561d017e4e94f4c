"""Engines: who runs pyhudi's parallel work. `protocol` says what they promise."""
