"""Models of a function that is costly to evaluate."""
