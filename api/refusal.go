package api

import (
	"bytes"
	"net/http"
	"unicode/utf8"

	"palimpsest/tenants/redaction"
)

const (
	// maxSaid bounds the kept part of a provider's error, in bytes.
	maxSaid = 8 << 10
	// maxHeard bounds the part that is read. It is larger so that a secret that ends behind maxSaid is still
	// recognized.
	maxHeard = 2 * maxSaid
)

// refusal collects the text of an error answer. A nil refusal ignores it.
type refusal struct {
	encoding string
	redactor *redaction.Redactor
	heard    []byte
}

// refusalOf returns a collector for the answer to a request. It is nil if the answer is not an error or must
// not be kept.
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

// text returns the kept part, or nil if empty.
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

// keptOf returns the kept part of an error: its beginning, without personal data or anything that looks like
// a secret. It is nil for binary data.
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
