package producer

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// JetStream's error codes that it answers before it stores anything (errors.json
// of nats-server 2.15; stream.go and jetstream_cluster.go send them ahead of the
// store and of the Raft log).
const (
	codeAccountResources jetstream.ErrorCode = 10002
	codeInsufficient     jetstream.ErrorCode = 10023
	codeMemoryResources  jetstream.ErrorCode = 10028
	codeStorageResources jetstream.ErrorCode = 10047
	codeMessageTooLarge  jetstream.ErrorCode = 10054
	codeOtherStream      jetstream.ErrorCode = 10060
	codeStoreFailed      jetstream.ErrorCode = 10077
	codeHeaderTooLarge   jetstream.ErrorCode = 10097
	codeSealed           jetstream.ErrorCode = 10109
	codeTooManyRequests  jetstream.ErrorCode = 10167

	// Of an atomic batch: none of its messages is stored by this attempt.
	codeAtomicDisabled   jetstream.ErrorCode = 10174
	codeAtomicIncomplete jetstream.ErrorCode = 10176 // a message of it is missing
	codeAtomicTooLarge   jetstream.ErrorCode = 10199
	codeAtomicDuplicate  jetstream.ErrorCode = 10201 // a Nats-Msg-Id of it is in the stream's window
	codeAtomicTooMany    jetstream.ErrorCode = 10210 // batches are open on the stream, or on the server

	// Under the same Nats-Msg-Id another attempt is between its leader and its store.
	codeDuplicateInProcess jetstream.ErrorCode = 10158
)

// fullTexts are the descriptions under which code 10077 is a refusal by a limit.
// Under any other the write itself failed, and what is on the disk is not known.
var fullTexts = []string{"maximum bytes exceeded", "maximum messages exceeded", "maximum messages per subject exceeded"}

// refusedToSend classifies an error that the client gave back at once, before it
// handed the message to a connection.
func refusedToSend(err error) *Error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return notStored(false, "the message is larger than the server's max_payload: shorten it, or raise max_payload", err).as(ErrTooLarge)
	case errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrHeadersNotSupported):
		return notStored(false, "the client refuses the message", err)
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return notStored(true, "there is no connection to take the message: publish it again", err)
	default:
		return unknown("the connection failed while it took the message: publish it again under the same key", err)
	}
}

// refusedByServer classifies what came back, or did not, after the message was
// handed to a connection.
func refusedByServer(err error) *Error {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return refusedByStream(api)
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return notStored(true, "no stream takes the subject: provision the streams, or check the prefix", err).as(errNoStream)
	default:
		return unknown("no acknowledgement came: publish it again under the same key", err)
	}
}

func refusedByStream(api *jetstream.APIError) *Error {
	switch api.ErrorCode {
	case codeStoreFailed:
		for _, text := range fullTexts {
			if strings.Contains(api.Description, text) {
				return notStored(true, "the stream is full: trim it, raise its max bytes, or publish again later", api).as(ErrStreamFull)
			}
		}
		if strings.Contains(api.Description, "message to large") || strings.Contains(api.Description, "message too large") {
			return notStored(false, "the message is larger than the stream takes: shorten it", api).as(ErrTooLarge)
		}
		return unknown("the stream could not write the message: publish it again under the same key", api)
	case codeMessageTooLarge, codeHeaderTooLarge:
		return notStored(false, "the message is larger than the stream takes: shorten it", api).as(ErrTooLarge)
	case codeOtherStream:
		return notStored(false, "the subject belongs to another stream than expected: check the prefix and the streams' subjects", api)
	case codeAccountResources, codeInsufficient, codeMemoryResources, codeStorageResources:
		return notStored(true, "JetStream has no room left: free some, or raise its limits", api).as(errNoRoom)
	case codeSealed:
		return notStored(false, "the stream is sealed: provision another one", api)
	case codeTooManyRequests:
		return notStored(true, "the stream is overloaded: publish again later", api)
	case codeAtomicDisabled, codeAtomicIncomplete, codeAtomicTooLarge, codeAtomicDuplicate, codeAtomicTooMany:
		return notStored(true, "the stream refused the batch: publish it again", api)
	default:
		return unknown("the stream answered with an error: publish it again under the same key", api)
	}
}
