"""What operators do to players and replays: each act is one function, recorded in the transaction that it runs in.

Commands, routes and the service itself do nothing to others' data but by `perform`.
"""
