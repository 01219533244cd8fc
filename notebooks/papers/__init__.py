"""What only the claims of the papers need: their own figures, and the bounds of their theorems."""
