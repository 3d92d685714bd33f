"""What can be measured of a run: inside the loop, and afterwards."""
