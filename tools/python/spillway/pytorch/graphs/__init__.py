"""A step's graphs: their tasks, what these cost, and the graphs that execute a plan."""
