"""When bodies count as being in contact."""

TOUCH = 5e-4
"""m that bodies may overlap and still only touch: fingers on a table. Half of what a dry run lets the motion have."""
