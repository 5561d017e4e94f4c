"""hoodie.properties, options, table versions; the names of files and actions they decide."""
