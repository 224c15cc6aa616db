"""HTTP/1.1 on a connection: parsing, limits, deadlines, back-pressure, the encoding of replies.

What an upgrade of Twisted must check; CONTRIBUTING.md has the steps. Private names:

- http.HTTPChannel: _command, _dataBuffer, _finishRequestBody, _handlingRequest, _maybeChooseTransferDecoder,
  _networkProducer, _path, _receivedHeaderCount, _receivedHeaderSize, _respondToBadRequestAndDisconnect,
  _send100Continue, _transferDecoder, _version, _waitingForTransport
- basic.LineReceiver: _buffer, _busyReceiving
- http.Request: _disconnected
- components.Componentized: _adapterCache
- http: _IdentityTransferDecoder
- the reactor: _disconnectSelectable

Public names that are overridden, or read, and whose callers and order matter:

- the channel: dataReceived, lineReceived, lineLengthExceeded, rawDataReceived, allHeadersReceived, allContentReceived,
  checkPersistence, requestDone, setTimeout, timeoutConnection, pauseProducing, resumeProducing, write, loseConnection,
  getHost, getPeer, length, paused, readConnectionLost, writeConnectionLost
- the request: its constructor, gotLength, handleContentChunk, requestReceived, processingFailed, finish,
  connectionLost, getRequestHostname, client, host, notifications, queued, requestHeaders, responseHeaders,
  received_cookies, cookies

Behaviour without a name:

- what lineReceived does between the first line of a head and the last, which `Channel` does at once for an ordinary one
- allHeadersReceived calls gotLength; allContentReceived saves timeOut, and requestDone restores it
- finish writes nothing once startedWriting is set, and logs nothing without a factory in the channel
- the transport calls readConnectionLost again whenever reading is resumed after the end of the input
- a transport calls startWriting, which is overridden, when there is something to send or to close, and keeps what its
  socket did not take in dataBuffer
- the transport pauses its producer above 65,536 bytes, and resumes it when all of them are sent
"""
