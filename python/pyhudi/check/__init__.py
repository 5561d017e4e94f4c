"""Comparing what a table's timeline, its files and its metadata table say: `HudiTable.check`.

`findings` are what comes out; `files` compares the timeline with storage, `metadata` the metadata
table with both; `contents` looks into files and `keys` at record keys, both as tasks of an engine;
`run` puts them together. Nothing here changes a table.
"""
