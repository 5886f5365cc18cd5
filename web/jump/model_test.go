package jump

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
)

// listedKeys are the API keys of a workspace.
type listedKeys struct {
	apiKeys

	keys []tenants.APIKey
}

type apiKeys = tenants.APIKeys

func (l listedKeys) APIKeys(context.Context, tenants.WorkspaceID) ([]tenants.APIKey, error) {
	return l.keys, nil
}

// Of many keys that match no more are listed than a group holds; a revoked one, or another person's, leads
// to the list instead of its form.
func TestKeysAreFoundWithWhatCanBeDone(t *testing.T) {
	t.Parallel()
	who := tenants.Principal{Role: tenants.Regular, User: tenants.User{ID: uuid.New()}}
	own := tenants.APIKey{ID: uuid.New(), Name: "laptop own", CreatedBy: who.User.ID}
	revoked, others := own, tenants.APIKey{ID: uuid.New(), Name: "laptop hers", CreatedBy: uuid.New()}
	revoked.ID, revoked.Name, revoked.RevokedAt = uuid.New(), "laptop gone", new(time.Unix(1, 0))
	keys := []tenants.APIKey{{Name: "another"}, revoked, others, own}
	for name, want := range map[string][]string{
		"laptop": {"/keys", "/keys", "/keys/" + own.ID.String() + "/edit"}, "own": {"/keys/" + own.ID.String() + "/edit"}, "gone": {"/keys"}, "none": nil,
	} {
		h := New(Deps{APIKeys: listedKeys{keys: keys}})
		found, err := h.keys(t.Context(), who, name)
		if err != nil || len(found.Items) != len(want) {
			t.Errorf("%s: %+v, %v", name, found.Items, err)
			continue
		}
		for i, item := range found.Items {
			if item.Path != want[i] || strings.Contains(item.About, "revoked") != (item.Title == "laptop gone") {
				t.Errorf("%s: %+v leads to %s, want %s", name, item, item.Path, want[i])
			}
		}
	}
	for _, number := range []int{perGroup - 1, perGroup, perGroup + 1} {
		var many []tenants.APIKey
		for range number {
			many = append(many, own)
		}
		h := New(Deps{APIKeys: listedKeys{keys: many}})
		if found, err := h.keys(t.Context(), who, "laptop"); err != nil || len(found.Items) != min(number, perGroup) {
			t.Errorf("%d keys: %d are listed, %v", number, len(found.Items), err)
		}
	}
}

// A hit leads to its first message in its own thread, which is counted from one for people.
func TestHitLeadsToItsFirstMessage(t *testing.T) {
	t.Parallel()
	for from, said := range map[int]string{0: "message 1", 7: "message 8, Bash"} {
		hit := archive.Hit{Session: uuid.New(), Lane: uuid.New(), From: from, To: from + 3}
		if from > 0 {
			hit.Tools = []string{"Bash", "Read"}
		}
		want := "/sessions/" + hit.Session.String() + "?lane=" + hit.Lane.String() + "&m=" + strconv.Itoa(from)
		if got := hitPath(&hit); got != want || !strings.HasSuffix(hitWords(&hit), said) {
			t.Errorf("%s leads to %s, want %s", hitWords(&hit), got, want)
		}
	}
}
