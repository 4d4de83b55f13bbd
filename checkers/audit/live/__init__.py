"""What was seen in runs and histories, as facts that rules judge like those of code."""
