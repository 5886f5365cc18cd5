package semanticcache

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Why a request is left alone: the values of the reason that Read returns.
const (
	ReasonHistory   = "history"   // it is not a single question of a user
	ReasonForeign   = "foreign"   // it holds something that is not known, or that only the provider knows
	ReasonAmbiguous = "ambiguous" // it can be read in two ways
	ReasonStored    = "stored"    // the provider is to keep the answer
	ReasonVolatile  = "volatile"  // the answer depends on when it is asked, or is to be another each time
	ReasonTools     = "tools"     // the provider runs tools of its own
	ReasonLong      = "long"      // it is longer than MaxBody
)

// MaxBody is the largest body that is looked at, in bytes.
const MaxBody = 1 << 20

// Key is a keyed hash: what it was made of cannot be guessed without the secret.
type Key [sha256.Size]byte

// Asked is a request as it goes to the provider.
type Asked struct {
	Format conversation.Format
	Rules  wire.Reuse // of its format
	Body   []byte

	// Origin is what sets requests with equal bodies apart: workspace, scope,
	// provider, path and the headers that change answers. Its parts are compared one
	// by one.
	Origin []string
}

// Question is a single question.
type Question struct {
	Key Key // of everything but formatting

	// Alike is equal for all questions that differ in nothing but in how the same
	// thing is said; zero: the question takes exact hits only.
	Alike Key

	Text string // what the user said; empty without Alike
}

// IsSemantic reports whether the question may be answered with the answer to
// another one.
func (q *Question) IsSemantic() bool { return q.Alike != Key{} }

// alikeVersion changes whenever Meaning does, so that questions that were kept by
// other rules are not found.
const alikeVersion = "1"

// Read reads a request as a question. secret makes its keys. If the request is to be
// left alone, question is nil and reason says why.
func Read(asked Asked, secret []byte) (question *Question, reason string) {
	if len(asked.Body) > MaxBody {
		return nil, ReasonLong
	}
	body, err := readObject(asked.Body)
	if err != nil {
		return nil, ReasonAmbiguous
	}
	kept := object{}
	var said speech
	for name, value := range body {
		if string(value) == "null" {
			continue
		}
		switch asked.Rules.Member(name) {
		case wire.Unknown:
			return nil, ReasonForeign
		case wire.Formatting:
		case wire.Conversation:
			if said, reason = readSpeech(asked.Rules, value); reason != "" {
				return nil, reason
			}
		case wire.Tools:
			if !areClientTools(asked.Rules, value) {
				return nil, ReasonTools
			}
			kept[name] = value
		case wire.System, wire.Counts:
			kept[name] = value
		}
	}
	if reason := unmet(asked.Rules, body); reason != "" {
		return nil, reason
	}
	if said.user == 0 {
		return nil, ReasonHistory
	}
	if isVolatile(said.texts) {
		return nil, ReasonVolatile
	}
	return newQuestion(asked, kept, said, systemOf(asked.Rules, body, said), secret)
}

// newQuestion makes the keys.
func newQuestion(asked Asked, kept object, said speech, system string, secret []byte) (*Question, string) {
	rest, err := kept.appendCanonical(nil)
	if err != nil {
		return nil, ReasonAmbiguous
	}
	around, whole, err := said.canonical()
	if err != nil {
		return nil, ReasonAmbiguous
	}
	origin := append([]string{string(asked.Format)}, asked.Origin...)
	question := &Question{Key: keyOf(secret, append(origin, string(rest), string(around), string(whole)))}
	if said.isMixed || len(said.texts) != 1 || isAboutWords(system) {
		return question, ""
	}
	if meaning, ok := Meaning(said.texts[0]); ok {
		question.Text = said.texts[0]
		question.Alike = keyOf(secret, append(origin, string(rest), string(around), "alike "+alikeVersion, meaning))
	}
	return question, ""
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

// unmet says why a request is left alone for what some of its members say.
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

// areClientTools reports whether tools are such that the client runs: their answer
// is not kept in any case, but what the provider looks up for itself is of today.
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

// systemOf returns everything that is said before the user's message.
func systemOf(rules wire.Reuse, body object, said speech) string {
	system := said.system
	for name, raw := range body {
		if rules.Member(name) == wire.System || name == "response_format" || name == "text" || name == "output_format" || name == "output_config" {
			system = append(system, string(raw))
		}
	}
	return strings.Join(system, " ")
}
