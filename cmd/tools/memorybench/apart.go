package memorybench

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// apart lists prefixes of the ids of recorded sessions excluded from tuning.
var apart = []string{"bccb77bb88fa", "f0c3dbdad0d8", "f449058a5889", "ec6d3a8b5152", "18b9cffdf43b"} //nolint:gochecknoglobals // never changes

// IsApart reports whether a recorded session is excluded from tuning: those named above and, so that there
// are enough to measure, every fourth of the others by a hash of its id. Tuning uses only the rest; both
// parts are reported.
func IsApart(session string) bool {
	if slices.ContainsFunc(apart, func(id string) bool { return strings.HasPrefix(session, id) }) {
		return true
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(session)) // never fails
	return hash.Sum32()%4 == 0
}

// Part returns the excluded sessions of a set, or the others, with their questions.
func (r *Recorded) Part(isApart bool) *Recorded {
	other := func(session string) bool { return IsApart(session) != isApart }
	asked := func(asks []Ask) []Ask {
		return slices.DeleteFunc(slices.Clone(asks), func(ask Ask) bool { return other(ask.Session) })
	}
	part := Recorded{Sessions: maps.Clone(r.Sessions), Tools: asked(r.Tools), Rereads: asked(r.Rereads), Refs: asked(r.Refs)}
	maps.DeleteFunc(part.Sessions, func(id string, _ []conversation.Message) bool { return other(id) })
	return &part
}

// PartOf returns the compactions of excluded sessions, or those of the others.
func PartOf(compactions []Compaction, isApart bool) []Compaction {
	return slices.DeleteFunc(slices.Clone(compactions), func(one Compaction) bool {
		return IsApart(one.ID[:strings.LastIndexByte(one.ID, '-')]) != isApart
	})
}
