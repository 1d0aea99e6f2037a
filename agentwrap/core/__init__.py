"""Pure core: bytes, values and the time go in, values come out. No I/O, no clock, nothing of the system."""
