"""Backends: one file each, data only; both runtimes read the same spec."""
