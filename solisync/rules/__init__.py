"""Message shapes and the decisions of each noun: pure functions of their arguments, without I/O, clock or Twisted."""
