"""Message shapes and the rules of each resource: pure functions of their arguments, without I/O, clock or Twisted."""
