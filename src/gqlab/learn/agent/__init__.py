"""An agent beside an environment."""
