"""What is allowed and what follows from it: message shapes and decisions; pure, without I/O, clock or Twisted."""
