package semanticcache

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// The reasons for bypassing the cache, as Read returns them.
const (
	ReasonHistory   = "history"   // it is not a single question of a user
	ReasonForeign   = "foreign"   // it holds an unknown member, or refers to the provider's state
	ReasonAmbiguous = "ambiguous" // it can be read in two ways
	ReasonStored    = "stored"    // the provider is to store the answer
	ReasonVolatile  = "volatile"  // the answer depends on the time, or is to be different each time
	ReasonTools     = "tools"     // the provider runs its own tools
	ReasonLong      = "long"      // it is longer than MaxBody
)

// MaxBody is the largest body to consider, in bytes.
const MaxBody = 1 << 20

// Key is a keyed hash: its input cannot be guessed without the secret.
type Key [sha256.Size]byte

// Asked is a request as it goes to the provider.
type Asked struct {
	Format conversation.Format
	Rules  wire.Reuse // of its format
	Body   []byte

	// Origin distinguishes requests with equal bodies: workspace, scope, provider, path and the
	// headers that change answers. Its parts are compared one by one.
	Origin []string
}

// Read returns the key of a request that is a single question: a keyed hash, with secret, of
// everything but formatting. If the request must bypass the cache, reason says why.
func Read(asked Asked, secret []byte) (key Key, reason string) {
	if len(asked.Body) > MaxBody {
		return Key{}, ReasonLong
	}
	body, err := readObject(asked.Body)
	if err != nil {
		return Key{}, ReasonAmbiguous
	}
	kept := object{}
	var said speech
	for name, value := range body {
		if string(value) == "null" {
			continue
		}
		switch asked.Rules.Member(name) {
		case wire.Unknown:
			return Key{}, ReasonForeign
		case wire.Formatting:
		case wire.Conversation:
			if said, reason = readSpeech(asked.Rules, value); reason != "" {
				return Key{}, reason
			}
		case wire.Tools:
			if !areClientTools(asked.Rules, value) {
				return Key{}, ReasonTools
			}
			kept[name] = value
		case wire.System, wire.Counts:
			kept[name] = value
		}
	}
	if reason := unmet(asked.Rules, body); reason != "" {
		return Key{}, reason
	}
	if said.user == 0 {
		return Key{}, ReasonHistory
	}
	if isVolatile(said.texts) {
		return Key{}, ReasonVolatile
	}
	return newKey(asked, kept, said, secret)
}

// newKey makes the key of the whole question.
func newKey(asked Asked, kept object, said speech, secret []byte) (Key, string) {
	rest, err := kept.appendCanonical(nil)
	if err != nil {
		return Key{}, ReasonAmbiguous
	}
	around, whole, err := said.canonical()
	if err != nil {
		return Key{}, ReasonAmbiguous
	}
	parts := append([]string{string(asked.Format)}, asked.Origin...)
	return keyOf(secret, append(parts, string(rest), string(around), string(whole))), ""
}

// keyOf hashes parts so that no two lists of parts have the same input.
func keyOf(secret []byte, parts []string) Key {
	mac := hmac.New(sha256.New, secret)
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		mac.Write(sum[:])
	}
	return Key(mac.Sum(nil))
}

// unmet returns why the values of some members make a request bypass the cache.
func unmet(rules wire.Reuse, body object) string {
	for _, required := range rules.Requirements {
		raw, has := body[required.Member]
		has = has && string(raw) != "null"
		if !has && !required.Present || string(bytes.Join(bytes.Fields(raw), nil)) == required.Value {
			continue
		}
		if required.Stored {
			return ReasonStored
		}
		return ReasonForeign
	}
	return ""
}

// areClientTools reports whether the client runs all tools. Answers with calls are not kept in any
// case, but the results of the provider's own tools depend on the time.
func areClientTools(rules wire.Reuse, raw json.RawMessage) bool {
	var tools []json.RawMessage
	if json.Unmarshal(raw, &tools) != nil {
		return false
	}
	for _, tool := range tools {
		read, err := readObject(tool)
		if err != nil {
			return false
		}
		kind, typed := read.text("type")
		if typed != (kind != "") || !slices.Contains(rules.ClientTools, kind) {
			return false
		}
	}
	return true
}
