"""HTTP/1.1 on a connection: parsing, limits, deadlines, back-pressure, the encoding of replies.

This package depends on details of Twisted that an upgrade must check; CONTRIBUTING.md has the steps. Private names:

- http.HTTPChannel: _command, _dataBuffer, _finishRequestBody, _handlingRequest, _maybeChooseTransferDecoder,
  _networkProducer, _path, _receivedHeaderCount, _receivedHeaderSize, _respondToBadRequestAndDisconnect,
  _send100Continue, _transferDecoder, _version, _waitingForTransport
- basic.LineReceiver: _buffer, _busyReceiving
- http.Request: _disconnected
- components.Componentized: _adapterCache
- http: _IdentityTransferDecoder
- the reactor: _disconnectSelectable

Public names that this package overrides or reads, and whose callers and order of calls matter:

- the channel: dataReceived, lineReceived, lineLengthExceeded, rawDataReceived, allHeadersReceived, allContentReceived,
  checkPersistence, requestDone, setTimeout, timeoutConnection, pauseProducing, resumeProducing, write, loseConnection,
  getHost, getPeer, length, paused, readConnectionLost, writeConnectionLost
- the request: its constructor, gotLength, handleContentChunk, requestReceived, processingFailed, finish,
  connectionLost, client, host, notifications, queued, requestHeaders, responseHeaders,
  received_cookies, cookies

Other behaviour:

- the work of lineReceived from the first line of a head to the last: `Channel` does it in one step for ordinary heads
- allHeadersReceived calls gotLength; allContentReceived saves timeOut, and requestDone restores it
- finish writes nothing once startedWriting is set, and logs nothing without a factory in the channel
- the transport calls readConnectionLost again each time that reading is resumed after the end of the input
- a transport calls startWriting, which is overridden, to send data or to close, and keeps in dataBuffer the data that
  its socket did not take
- the transport pauses its producer above 65,536 bytes, and resumes it when all bytes are sent
"""
