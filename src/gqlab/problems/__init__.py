"""Problems: an MDP, features, a behaviour policy and a target; and functions that make them."""
