"""Problems: an MDP, features, a behaviour policy and a target; and where they come from."""
