package wire

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Fields reads top-level members of a body and keeps the first fault. Missing and null members read as zero.
// A member that appears twice, ignoring case, is a fault, because the proxy and the provider might use
// different ones.
type Fields struct {
	body *Envelope
	err  error
}

// NewFields returns a reader of a body's members.
func NewFields(body *Envelope) *Fields { return &Fields{body: body} }

// Err returns the first fault, an *Invalid.
func (f *Fields) Err() error { return f.err }

// String reads a string.
func (f *Fields) String(name string) string {
	raw := f.Raw(name)
	if raw == nil {
		return ""
	}
	text, ok := String(raw)
	f.expect(name, "a string", ok)
	return text
}

// Int reads a whole number.
func (f *Fields) Int(name string) int {
	raw := f.Raw(name)
	if raw == nil {
		return 0
	}
	number, ok := Int(raw)
	f.expect(name, "a whole number", ok)
	return number
}

// Bool reads true or false.
func (f *Fields) Bool(name string) bool {
	raw := f.Raw(name)
	f.expect(name, "true or false", raw == nil || string(raw) == "true" || string(raw) == "false")
	return string(raw) == "true"
}

// Array reads an array.
func (f *Fields) Array(name string) json.RawMessage {
	raw := f.Raw(name)
	f.expect(name, "an array", raw == nil || raw[0] == '[')
	return raw
}

// Object reads an object.
func (f *Fields) Object(name string) json.RawMessage {
	raw := f.Raw(name)
	f.expect(name, "an object", raw == nil || raw[0] == '{')
	return raw
}

// TextOrArray reads a string or an array.
func (f *Fields) TextOrArray(name string) json.RawMessage {
	raw := f.Raw(name)
	f.expect(name, "a string or an array", raw == nil || raw[0] == '"' || raw[0] == '[')
	return raw
}

// Raw reads any value; nil if it is missing or null.
func (f *Fields) Raw(name string) json.RawMessage {
	raw, _ := f.body.Member(name)
	if f.err == nil && f.body.repeats(name) {
		f.err = &Invalid{Member: name, Message: "is there twice; send it once"}
	}
	if IsNull(raw) {
		return nil
	}
	return raw
}

func (f *Fields) expect(name, what string, ok bool) {
	if !ok && f.err == nil {
		f.err = &Invalid{Member: name, Message: "expected " + what}
	}
}

// nameLength is the longest accepted session name in a body, in bytes.
const nameLength = 255

// SessionName returns the session's name in a body and the member that held it: the first of metadata.user_id
// (after "_session_", or as JSON with session_id), metadata.session_id, prompt_cache_key, conversation (or
// its id) and the answer that it continues. Names over 255 bytes are ignored.
func SessionName(body *Envelope) (name, source string) {
	metadata, _ := body.Member("metadata")
	for _, candidate := range []struct {
		source string
		name   func() string
	}{
		{"metadata.user_id", func() string { return sessionOfUser(Text(metadata, "user_id")) }},
		{"metadata.session_id", func() string { return Text(metadata, "session_id") }},
		{"prompt_cache_key", func() string { return body.text("prompt_cache_key") }},
		{"conversation", func() string {
			raw, _ := body.Member("conversation")
			if len(raw) > 0 && raw[0] == '{' {
				return Text(raw, "id")
			}
			return body.text("conversation")
		}},
		{previousResponse, func() string { return body.text(previousResponse) }},
		{previousInteraction, func() string { return body.text(previousInteraction) }},
	} {
		if name = candidate.name(); name != "" && len(name) <= nameLength {
			return name, candidate.source
		}
	}
	return "", ""
}

// The members that name an answer which the provider stores, and which the request continues.
const previousResponse, previousInteraction = "previous_response_id", "previous_interaction_id"

// Previous returns the id of the stored answer that a body continues; "" if absent.
func Previous(body *Envelope) string {
	return cmp.Or(body.text(previousResponse), body.text(previousInteraction))
}

// Stores reports whether the provider stores the answer to a body, which it does unless the body says that it
// must not.
func Stores(body *Envelope) bool {
	store, _ := body.Member("store")
	return string(store) != "false"
}

// EndUser returns the id by which an application names its current user: the first of user, safety_identifier
// (https://platform.openai.com/docs/guides/safety-best-practices) and metadata.user_id
// (https://platform.claude.com/docs/en/api/messages). Claude Code writes a session into the last one. In that
// case the id is the account, or otherwise the device.
func EndUser(body *Envelope) string {
	metadata, _ := body.Member("metadata")
	return cmp.Or(body.text("user"), body.text("safety_identifier"), userOfUser(Text(metadata, "user_id")))
}

// userOfUser returns a user id without the session in Claude Code's.
func userOfUser(user string) string {
	if sessionOfUser(user) == "" {
		return user
	}
	if user[0] == '{' {
		id := json.RawMessage(user)
		return cmp.Or(Text(id, "account_uuid"), Text(id, "device_id"))
	}
	return user[:strings.LastIndex(user, "_session_")]
}

// sessionOfUser returns the session id in Claude Code's user id.
func sessionOfUser(user string) string {
	if len(user) > 0 && user[0] == '{' {
		return Text(json.RawMessage(user), "session_id")
	}
	if i := strings.LastIndex(user, "_session_"); i >= 0 {
		return user[i+len("_session_"):]
	}
	return ""
}

// text returns a top-level string; "" if the value is not a string.
func (e *Envelope) text(name string) string {
	raw, _ := e.Member(name)
	text, _ := String(raw)
	return text
}
