"""One file per verb: plain functions that return an exit code."""
