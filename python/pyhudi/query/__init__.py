"""What a read looks at: the slices of a moment, a range or a difference, pruned, as tasks."""
