"""Upper bounds on road networks, for the readers and the network itself."""

MOST_M_S, LONGEST_M = 1e3, 4e7  # for a road: above the speed of sound, and the circumference of the earth
FARTHEST_M = 1e8  # largest coordinate of a point on a plane
MOST_PARTS = 4 * 10**6  # number of points and turns in a file, plus four per road
