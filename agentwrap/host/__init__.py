"""Everything that touches the system: terminals, processes, signals, files."""
