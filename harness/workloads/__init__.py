"""Workloads: what the workers do, one file each; see base.py and registry.py."""
