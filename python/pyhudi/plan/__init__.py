"""Pure planning: table state and a request to frozen, picklable tasks."""
