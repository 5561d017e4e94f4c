"""What a row is: columns and their ids, keys, payloads, filters, assigned values."""
