"""Which files a table consists of: names, partitions, file groups, slices."""
