package apiclients

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"

	"palimpsest/api/upstream/providerdouble"
)

// threadsCase is the case of a client that sends only the new messages of its conversation.
const threadsCase = "message threads past the window"

// threads is the case of Claude Code's behavior without a proxy: the provider holds the conversation, until
// the proxy asks for all of it.
func threads() Case {
	return Case{
		Name: threadsCase, window: windowSize, threads: true, only: claudeCodePackage,
		says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentOnWhole,
	}
}

// wentOnWhole requires that the client continued its thread, was asked for the whole conversation, and
// still worked past its window.
func wentOnWhole(t *Trial) (string, error) {
	whole := *t
	whole.Exchanges = slices.DeleteFunc(slices.Clone(t.Exchanges), Exchange.isAskedForTheWhole)
	if len(whole.Exchanges) == len(t.Exchanges) {
		return "", errors.New("the client went on with no thread: it does not do what the case is about")
	}

	return wentPastTheWindow(&whole)
}

// isAskedForTheWhole reports whether the proxy told the client that its thread is gone.
func (e Exchange) isAskedForTheWhole() bool {
	return e.Status == http.StatusNotFound && strings.Contains(e.Refusal, `"thread_not_found"`) && bytes.Contains(e.Body, []byte(`"continue"`))
}

// receivedUnheld reports whether the provider received a request that begins a thread, without the request
// to hold it.
func (t *Trial) receivedUnheld(exchange Exchange) bool {
	unheld := bytes.Replace(exchange.Body, []byte(`"thread":{"type":"create"}`), []byte(`"thread":null`), 1)

	return t.Case.threads && slices.ContainsFunc(t.Received, func(request providerdouble.Recorded) bool { return bytes.Equal(request.Body, unheld) })
}
