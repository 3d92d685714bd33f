"""Speed and memory, measured: ``make bench`` or ``python -m benchmarks``. A speed is a ratio in one run."""
