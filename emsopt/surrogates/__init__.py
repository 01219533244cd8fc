"""Models of an unknown function from its values at some points: Gaussian processes, kernel regression, horseshoe."""
