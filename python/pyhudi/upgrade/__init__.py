"""Moving a table to another table version. Never done unasked."""
