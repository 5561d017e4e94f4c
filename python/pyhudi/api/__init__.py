"""What users hold: tables, scans, changes, builders. Thin: the verbs are carried out below."""
