"""Writing: transactions, markers, rollback, and the verbs built on them."""
