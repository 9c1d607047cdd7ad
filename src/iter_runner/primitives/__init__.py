"""What each primitive of a plan does when its turn comes."""
