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

// Redactor replaces personal data in what was said. In place of each piece stands its kind and a
// tag, as [email-k7f2m7]: the same tag for the same piece everywhere in a workspace, and another
// for every other, so that what is compared, searched and counted stays comparable. Nobody without
// the workspace's key can try out what a tag stands for. Redacting twice is redacting once.
//
// A nil Redactor replaces nothing. One may be used by several goroutines at once.
type Redactor struct {
	kinds []tenants.RedactionKind
	names nameList // that the workspace has listed
	key   []byte
}

// New returns what redacts for a workspace; nil if it redacts nothing. key makes the tags.
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

// placeholder is what stands in place of a piece of personal data.
var placeholder = expression.New(`\[(?:name|email|card|phone|key)-[a-z2-7]{6}\]`)

// pass is one use of a Redactor.
type pass struct {
	*Redactor

	people  nameList       // names that the message tells
	isUsers bool           // the message may name the person who wrote it
	found   map[string]int // pieces, by kind
}

// span is a piece of a text that is to be replaced.
type span struct {
	from, to int
	kind     tenants.RedactionKind
	piece    string // in the form that makes its tag
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

// replace counts a piece and returns what stands in its place.
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

// spans returns what is to be replaced, in order and without overlaps: of two pieces in the same
// place, the one of the kind that is looked for first.
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

// merged returns spans, in order, with those of more that overlap none.
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
