package archive_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// byKey finds the hits of one API key at a time.
type byKey map[uuid.UUID][]archive.Hit

var errNoKey = errors.New("searched without a key")

func (b byKey) Search(_ context.Context, _ tenants.WorkspaceID, query archive.Query) ([]archive.Hit, error) {
	if query.APIKey == uuid.Nil {
		return nil, errNoKey
	}
	return b[query.APIKey], nil
}

func (byKey) Messages(context.Context, tenants.WorkspaceID, *archive.Hit) ([]conversation.Message, error) {
	return nil, archive.ErrNotFound
}

func TestSearchOfKeysFindsNothingOfOtherKeys(t *testing.T) {
	t.Parallel()
	mine, also, theirs := uuid.New(), uuid.New(), uuid.New()
	hits := byKey{
		mine:   {{From: 1, Score: 0.9}, {From: 2, Score: 0.1}},
		also:   {{From: 5, Score: 0.8, Quoted: true}, {From: 3, Score: 0.5}},
		theirs: {{From: 4, Score: 1}},
	}
	for name, test := range map[string]struct {
		query archive.Query
		want  []int
	}{
		"all, a phrase first": {archive.Query{Limit: 10}, []int{5, 1, 3, 2}},
		"so many of all":      {archive.Query{Limit: 2}, []int{5, 1}},
		"one of them":         {archive.Query{APIKey: also, Limit: 10}, []int{5, 3}},
		"another one":         {archive.Query{APIKey: theirs, Limit: 10}, nil},
	} {
		found, err := archive.SearchFor(t.Context(), hits, tenants.NewWorkspaceID(), tenants.Reader{Own: true, Keys: []uuid.UUID{mine, also}}, test.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, hit := range found {
			got = append(got, hit.From)
		}
		if len(got) != len(test.want) {
			t.Fatalf("%s: %v, want %v", name, got, test.want)
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
	}
}
