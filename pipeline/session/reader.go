package session

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"

	"github.com/google/uuid"
	"github.com/zeebo/xxh3"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cores"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// knownMessages bounds how many digests a Reader remembers, at about 250 bytes each.
const knownMessages = 200_000

// runMessages is how many messages a core reads at a time.
const runMessages = 8

// exactList is how many bytes of a message list are counted exactly: more than the largest window holds.
// Later messages are counted roughly, so that the cost of a request is bounded.
const exactList = 4 << 20

// undatedList is how many bytes of a list are searched for the date and time, which clients renew in their
// first messages. For the newest message see rewritings. A MiB of dated lines takes half a second of a core.
const undatedList = 256 << 10

// reads is the way to read a message, which depends on its place in the list.
type reads struct{ rough, dated bool }

func readsAt(start int) reads { return reads{rough: start >= exactList, dated: start >= undatedList} }

// Counter counts o200k tokens. It is safe for concurrent use. Rough may be off by some percent and costs
// about the same for any text.
type Counter interface {
	Message(conversation.Message) int
	Rough(conversation.Message) int
	Fixed(json.RawMessage) int
}

// Reader reads messages and knows those it has read before by their bytes: a
// client sends its whole history with every request, but only its end is new.
type Reader struct {
	counter  Counter
	messages *localcache.Cache[fingerprint, conversation.Digest]
	fixed    *localcache.Cache[fingerprint, int]
	seed     uint64

	beginnings *beginnings
}

// fingerprint identifies byte strings within this process. Its seed is random, so that an attacker can't
// prepare a collision.
type fingerprint = [32]byte

// fingerprintOf returns the fingerprint of bytes of a format with a hash, for one way of reading them.
func fingerprintOf(format conversation.Format, hash xxh3.Uint128, how reads) (made fingerprint) {
	binary.LittleEndian.PutUint64(made[0:], hash.Lo)
	binary.LittleEndian.PutUint64(made[8:], hash.Hi)
	binary.LittleEndian.PutUint64(made[16:], xxh3.HashString(string(format)))
	if how.rough {
		made[24] = 1
	}
	if how.dated {
		made[25] = 1
	}
	return made
}

// NewReader returns a Reader that counts with counter.
func NewReader(counter Counter) (*Reader, error) {
	messages, err := localcache.New[fingerprint](localcache.Options[conversation.Digest]{MaximumSize: knownMessages})
	if err != nil {
		return nil, fmt.Errorf("known messages: %w", err)
	}
	fixed, err := localcache.New[fingerprint](localcache.Options[int]{MaximumSize: knownMessages / 50})
	if err != nil {
		return nil, fmt.Errorf("known system prompts: %w", err)
	}
	seed := rand.Uint64() //nolint:gosec // the runtime seeds it; nobody sees what it makes
	beginnings, err := newBeginnings(seed)
	if err != nil {
		return nil, err
	}
	return &Reader{counter: counter, messages: messages, fixed: fixed, seed: seed, beginnings: beginnings}, nil
}

// Read cuts a body and returns the digests of all its messages, in order.
func (r *Reader) Read(codec wire.Codec, body []byte) (*wire.Envelope, []conversation.Digest, error) {
	found := reading{format: codec.Format()}
	envelope, err := wire.OpenKnown(body, codec.List(), func(list []byte) []wire.Range {
		found = r.beginnings.recognize(codec.Format(), list)
		return found.stretches
	})
	if err != nil {
		return nil, nil, err
	}
	known := len(found.digests)
	digests := slices.Grow(found.digests, envelope.Len()-known)[:envelope.Len()]
	err = cores.Each(envelope.Len()-known, runMessages, func(i int) (err error) {
		if digests[known+i], err = r.digest(codec, envelope.Element(known+i), readsAt(int(envelope.Range(known+i).Start))); err != nil {
			return fmt.Errorf("%s.%d: %w", codec.List(), known+i, err)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	found.digests = digests[:known]
	r.beginnings.learn(found, envelope.ListBytes(), digests, envelope.Range)
	leaveOutLead(digests)
	return envelope, digests, nil
}

// leaveOutLead removes the content of system and developer messages at the head of a list from its history's
// identity, because clients write the time, a date or the state of a directory into them. Their number still
// counts, since all places in a history depend on it. If no user message follows, they are the question and
// stay.
func leaveOutLead(digests []conversation.Digest) {
	lead := conversation.Lead(digests)
	if lead == len(digests) || digests[lead].Role != conversation.User {
		return
	}
	for i := range digests[:lead] {
		digests[i].Identity = conversation.Hash{}
	}
}

// Fixed counts the tokens of the parts that precede every conversation.
func (r *Reader) Fixed(format conversation.Format, parts []json.RawMessage) int {
	sum := 0
	for _, part := range parts {
		key := fingerprintOf(format, r.hash(part), reads{})
		tokens, known := r.fixed.Get(key)
		if !known {
			tokens = r.counter.Fixed(part)
			r.fixed.Set(key, tokens)
		}
		sum += tokens
	}
	return sum
}

// Text counts the tokens of a text as a message of its own.
func (r *Reader) Text(text string) int {
	return r.counter.Message(conversation.UserText(text))
}

func (r *Reader) digest(codec wire.Codec, raw json.RawMessage, how reads) (conversation.Digest, error) {
	key, count, read := fingerprintOf(codec.Format(), r.hash(raw), how), r.counter.Message, wire.Digest
	if how.rough {
		count = r.counter.Rough
	}
	if how.dated {
		read = wire.DatedDigest
	}
	if digest, known := r.messages.Get(key); known {
		return digest, nil
	}
	digest, err := read(codec, raw, count)
	if err != nil {
		return conversation.Digest{}, err
	}
	r.messages.Set(key, digest)
	return digest, nil
}

func (r *Reader) hash(raw []byte) xxh3.Uint128 { return xxh3.Hash128Seed(raw, r.seed) }

// Named is the lane that a pointer into the archive leads to.
type Named struct {
	Session uuid.UUID
	Lane    uuid.UUID
	Format  conversation.Format // of its messages
}

// Invalid describes an invalid parameter of a list request.
type Invalid struct {
	Field   string // the parameter's name
	Message string // continues the sentence after the field's name, and says how to fix it
}

// Error implements error.
func (i Invalid) Error() string { return i.Field + " " + i.Message }

// Shows returns the parts of a list of sessions, the complete one first.
func Shows() []Show {
	return []Show{ShowAll, ShowConversations, ShowCompressed, ShowBridged, ShowProblems, ShowSingle}
}

// FilterOf reads the filter of a workspace's session list from the parameters q, client, model, key, member,
// project, end_user, show and cursor, which have the same names in the page and the API. It returns an
// Invalid, and a filter that must not be used, if a key or member is not an id or the part is unknown.
func FilterOf(workspace tenants.WorkspaceID, address url.Values) (Filter, error) {
	filter := Filter{
		Query: address.Get("q"), Client: address.Get("client"), Model: address.Get("model"),
		Show: Show(address.Get("show")), Cursor: address.Get("cursor"),
	}
	if user := address.Get("end_user"); user != "" {
		filter.EndUser = EndUserIDs(workspace, user)
	}
	if key := address.Get("key"); key != "" {
		var err error
		if filter.APIKey, err = uuid.Parse(key); err != nil {
			return Filter{}, Invalid{"key", "is no id of an API key; leave it out for the sessions of all keys"}
		}
	}
	filter.Project = address.Get("project")
	if member := address.Get("member"); member != "" {
		var err error
		if filter.Member, err = uuid.Parse(member); err != nil {
			return Filter{}, Invalid{"member", "is not the id of a person; leave it out for the sessions of all"}
		}
	}
	filter.Label = address.Get("label")
	switch address.Get("score") {
	case "":
	case "up":
		filter.Score = 1
	case "down":
		filter.Score = -1
	default:
		return Filter{}, Invalid{"score", "must be up or down; leave it out for sessions with any score and with none"}
	}
	if !slices.Contains(Shows(), filter.Show) {
		return Filter{}, Invalid{"show", "must be conversations, compressed, bridged, problems or single; leave it out for all sessions"}
	}
	return filter, nil
}
