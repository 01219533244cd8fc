"""What no road network exceeds: bounds for its readers and for the network itself."""

MOST_M_S, LONGEST_M = 1e3, 4e7  # of any road: faster than sound, and once round the earth
FARTHEST_M = 1e8  # of any point on a plane
MOST_PARTS = 4 * 10**6  # of a file: points and turns, and four for each road; sixty times Luxembourg's
