"""HTTP/1.1 on a connection: parsing, limits, deadlines, back-pressure, the encoding of replies.

The package needs Twisted's transports, not its HTTP server. It relies on this behaviour of theirs:

- a transport calls `pauseProducing` of its producer above 65,536 unsent bytes, and `resumeProducing` when all are sent;
  it closes only without a producer
- after the end of the input it calls `readConnectionLost`, and again each time that reading is resumed
- `EndOfTurn` replaces `startWriting`, which a transport calls to send data or to close, reads `dataBuffer`, where the
  data is that its socket did not take, and uses `_disconnectSelectable` of the reactor, the only private name
"""
