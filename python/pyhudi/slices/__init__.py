"""File groups: which files are in them, and the tasks that read and write them."""
