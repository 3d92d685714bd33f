"""The command line: one module for each command, and the pages that they write."""
