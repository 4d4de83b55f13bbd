"""What the harness says to servers, one file per family, past every proxy."""
