"""Control problems: choose a set of variables to control at a cost, while the others vary at random."""
