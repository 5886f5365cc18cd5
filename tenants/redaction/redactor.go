package redaction

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"sort"
	"strings"

	"palimpsest/pipeline/expression"
	"palimpsest/tenants"
)

// Redactor replaces personal data in session text. A replaced piece becomes its kind and a tag, as
// [email-k7f2m7]. Equal pieces have equal tags in the whole workspace, and different pieces different ones,
// so that comparison, search and counts still work. Tags cannot be reversed by trial without the workspace's
// key. Redaction is idempotent.
//
// A nil Redactor does not change text. A Redactor may be used by several goroutines at once.
type Redactor struct {
	kinds []tenants.RedactionKind
	names nameList // listed by the workspace
	key   []byte
}

// New returns the Redactor of a workspace; nil if redaction is off. key makes the tags.
func New(settings tenants.Redaction, key []byte) *Redactor {
	if len(settings.Kinds) == 0 {
		return nil
	}
	r := &Redactor{kinds: settings.Kinds, key: key}
	if r.redacts(tenants.RedactNames) {
		r.names = listOf(settings.Names)
	}
	return r
}

func (r *Redactor) redacts(kind tenants.RedactionKind) bool { return slices.Contains(r.kinds, kind) }

// Text returns a text without personal data.
func (r *Redactor) Text(text string) string {
	if r == nil {
		return text
	}
	return (&pass{Redactor: r}).text(text)
}

// placeholder matches the replacement of a piece of personal data.
var placeholder = expression.New(`\[(?:name|email|card|phone|key)-[a-z2-7]{6}\]`)

// pass is one use of a Redactor.
type pass struct {
	*Redactor

	people  nameList       // names in the message
	isUsers bool           // the message may contain its author's name
	found   map[string]int // pieces, by kind
}

// span is a piece of a text to replace.
type span struct {
	from, to int
	kind     tenants.RedactionKind
	piece    string // normalized, for its tag
}

// text replaces the personal data of a text.
func (p *pass) text(text string) string {
	spans := p.spans(text)
	if len(spans) == 0 {
		return text
	}
	var out strings.Builder
	at := 0
	for _, one := range spans {
		out.WriteString(text[at:one.from])
		out.WriteString(p.replace(one.kind, one.piece))
		at = one.to
	}
	out.WriteString(text[at:])
	return out.String()
}

// replace counts a piece and returns its replacement.
func (p *pass) replace(kind tenants.RedactionKind, piece string) string {
	if p.found == nil {
		p.found = make(map[string]int)
	}
	p.found[string(kind)]++
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(string(kind) + " " + piece))
	tag := base32.StdEncoding.EncodeToString(mac.Sum(nil))[:6]
	return "[" + string(kind) + "-" + strings.ToLower(tag) + "]"
}

// spans returns the pieces to replace, in order and without overlaps. Of overlapping pieces, it keeps the one
// whose kind comes first.
func (p *pass) spans(text string) []span {
	var all []span
	for _, find := range []struct {
		kind tenants.RedactionKind
		in   func(text string) []span
	}{
		{tenants.RedactKeys, keys}, {tenants.RedactNames, p.namesIn}, {tenants.RedactEmails, emails},
		{tenants.RedactCards, cards}, {tenants.RedactPhones, phones},
	} {
		if !p.redacts(find.kind) {
			continue
		}
		found := find.in(text)
		for i := range found {
			found[i].kind = find.kind
		}
		all = merged(all, found)
	}
	if len(all) == 0 {
		return nil
	}
	done := placeholder.FindAllStringIndex(text, -1)
	return slices.DeleteFunc(all, func(one span) bool {
		next := sort.Search(len(done), func(i int) bool { return done[i][0] > one.from })
		return next > 0 && one.to <= done[next-1][1]
	})
}

// merged returns spans, in order, with the ones of more that do not overlap them.
func merged(spans, more []span) []span {
	if len(more) == 0 {
		return spans
	}
	slices.SortStableFunc(more, func(a, b span) int { return a.from - b.from })
	out := make([]span, 0, len(spans)+len(more))
	for _, one := range more {
		for len(spans) > 0 && spans[0].to <= one.from {
			out, spans = append(out, spans[0]), spans[1:]
		}
		if (len(spans) == 0 || spans[0].from >= one.to) && (len(out) == 0 || out[len(out)-1].to <= one.from) {
			out = append(out, one)
		}
	}
	return append(out, spans...)
}
