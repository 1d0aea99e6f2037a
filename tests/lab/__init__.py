"""What the tests with real coding agents stand on: their installation, a model, a terminal, a person."""
