package compactionbridge_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// asked counts how often a history was read.
type asked int

// Originals implements compactionbridge.Originals.
func (a *asked) Originals(context.Context, tenants.WorkspaceID, uuid.UUID, int, int) ([]archive.Entry, error) {
	*a++
	return nil, nil
}

// W43: nothing is put back once a block stands at the client's summary or behind it:
// the message that holds the summary counts.
func TestBlockAtTheBoundaryIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	const boundary = 3
	for name, test := range map[string]struct {
		insert session.Insert
		reads  asked
	}{
		"before the summary":         {session.Insert{Module: compactionbridge.Name, Message: boundary - 1}, 1},
		"at the summary":             {session.Insert{Module: compactionbridge.Name, Message: boundary}, 0},
		"behind the summary":         {session.Insert{Module: compactionbridge.Name, Message: boundary + 1}, 0},
		"in the system prompt":       {session.Insert{Module: compactionbridge.Name, Message: session.InSystem}, 0},
		"another module's":           {session.Insert{Module: "rehydrator", Message: boundary}, 1},
		"another module's in system": {session.Insert{Module: "rehydrator", Message: session.InSystem}, 1},
	} {
		reads := asked(0)
		exchange := &pipeline.View{
			Config: modules.Catalog().Default(),
			Lane: pipeline.Lane{
				Inserts: []session.Insert{test.insert},
				Left:    session.Left{Session: uuid.New(), Lane: uuid.New(), Kind: session.Main, From: uuid.New(), Messages: 9},
			},
			Class: client.Class{Kind: client.AfterCompaction, Confidence: 0.9, Marker: client.Marker{Boundary: boundary}},
		}
		if _, err := compactionbridge.New(nil, compactionbridge.Past{Originals: &reads}).Process(t.Context(), exchange); err != nil {
			t.Fatal(err)
		}
		if reads != test.reads {
			t.Errorf("%s: the history was read %d times, want %d", name, reads, test.reads)
		}
	}
}
