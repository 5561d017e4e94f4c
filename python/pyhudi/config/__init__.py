"""Properties and options, table versions, and the file names and actions that follow from them."""
