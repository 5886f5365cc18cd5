package ipc

import (
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// turn is a turn of the exchange with its plan and its form at each level. Each form is made when
// it is first needed.
type turn struct {
	conversation.Turn
	*reading // nil until read

	index    int
	floor    int  // its level in the current projection: it never goes back up
	deepest  int  // the level that it may go down to
	level    int  // as planned
	isFixed  bool // it may not change at any level
	verbatim int  // its messages before this one stay as they are at L2 and L3
	spared   int  // and from this one on at L1

	isEvicted bool // its media are out, at any level

	original int // o200k tokens as the client sent it
	front    int // o200k tokens of the verbatim messages

	shorter      []conversation.Message // those that L1 changes, by their place; nil until computed
	sizes        []int                  // o200k tokens of the messages at L1
	cut          []session.Part         // L1, a part a message; nil until encoded
	cutSize      int                    // its o200k tokens
	stripped     []session.Part         // L0 without media, a part a message; nil until computed
	strippedSize int                    // its o200k tokens

	isKept   bool   // kept has been made
	kept     []kept // its messages that stay behind its record
	keptSize int    // its o200k tokens

	record  *record  // L2 and L3 of the messages that are not verbatim; nil until computed
	written *written // the summary of the messages that are not verbatim; nil if absent
}

// forgetL1 drops the turn's L1 because it would now be different.
func (t *turn) forgetL1() { t.shorter, t.sizes, t.cut, t.cutSize = nil, nil, nil, 0 }

// forms renders turns at each level.
type forms struct {
	media   *media
	cuts    *cuts
	records *records
}

func newForms(history *history, protection *protection) *forms {
	media := &media{history: history, protection: protection}
	return &forms{
		media:   media,
		cuts:    &cuts{history: history, protection: protection, media: media},
		records: &records{history: history, protection: protection},
	}
}

// size returns the o200k tokens of a turn at a level; at L3 without its share of
// the block's line.
func (f *forms) size(t *turn, level int) (int, error) {
	switch level {
	case 0:
		if t.isEvicted {
			err := f.media.strip(t)
			return t.strippedSize, err
		}
		return t.original, nil
	case 1:
		err := f.cuts.shortenResults(t)
		return t.cutSize, err
	case 2:
		err := f.records.note(t)
		return t.front + t.record.size + t.keptSize, err
	default:
		err := f.records.note(t)
		return t.front + t.keptSize, err
	}
}
