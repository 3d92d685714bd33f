"""What agents reach on environments that everybody knows, measured by one command."""
