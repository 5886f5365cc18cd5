package api

import (
	"bytes"
	"net/http"
	"unicode/utf8"

	"palimpsest/tenants/redaction"
)

const (
	// maxSaid bounds what is kept of a provider's error, in bytes.
	maxSaid = 8 << 10
	// maxHeard bounds what is read of it: a secret that ends behind maxSaid is to be
	// seen as one.
	maxHeard = 2 * maxSaid
)

// refusal is what a provider says in an answer that is an error. A nil refusal hears
// nothing.
type refusal struct {
	encoding string
	redactor *redaction.Redactor
	heard    []byte
}

// refusalOf returns what hears the answer to a request; nil if it is no error, or
// nothing of it is to be kept.
func refusalOf(event *RequestLog, response *http.Response) *refusal {
	if response.StatusCode < http.StatusBadRequest || event.record.noStore {
		return nil
	}
	return &refusal{encoding: encodingOf(response.Header), redactor: event.record.redactor}
}

// hear takes the next bytes of the answer.
func (r *refusal) hear(p []byte) {
	if r != nil {
		r.heard = append(r.heard, p[:min(len(p), maxHeard-len(r.heard))]...)
	}
}

// text returns what is kept of it; nil for nothing.
func (r *refusal) text() []byte {
	if r == nil {
		return nil
	}
	plain := r.heard
	if isEncoding(r.encoding) {
		var err error
		if plain, err = decoded(r.encoding, r.heard, maxHeard); err != nil {
			return nil
		}
	}
	return keptOf(plain, r.redactor)
}

// keptOf returns what is kept of an error: its beginning, with nothing in it that
// looks like a secret and without personal data. What is not text is not kept.
func keptOf(plain []byte, redactor *redaction.Redactor) []byte {
	text := bytes.TrimSpace(plain)
	if len(text) == 0 || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	clean := bytes.ToValidUTF8([]byte(redactor.Text(redaction.Clean(string(text)))), []byte("\uFFFD"))
	if len(clean) <= maxSaid {
		return clean
	}
	end := maxSaid
	for end > 0 && !utf8.RuneStart(clean[end]) {
		end--
	}
	return append(clean[:end:end], "…"...)
}
