"""What every room uses: checks of arguments, files, JSON, progress bars."""
