"""Control problems: choose which variables of a function to control, at a cost, while the others vary at random."""
