package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations/dbtest"
)

// history is a list of messages as a client sends them, alternately typed and answered.
func history(texts ...string) []string {
	messages := make([]string, len(texts))
	for i, text := range texts {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		messages[i] = fmt.Sprintf(`{"role":%q,"content":%q}`, role, text)
	}
	return messages
}

// sayRaw sends messages of a named session to a replica and reads the answer to its end.
func (r *replicas) sayRaw(ctx context.Context, address string, messages []string) {
	r.t.Helper()
	body := `{"model":"claude-sonnet-4-5","max_tokens":64,"messages":[` + strings.Join(messages, ",") + `]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/messages", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("X-Claude-Code-Session-Id", "rewound")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		r.t.Fatalf("status %d: %s: %v", response.StatusCode, answer, err)
	}
}

// archived returns the hashes of each lane's messages, in order.
func archived(ctx context.Context, t *testing.T, database *dbtest.Database) map[string][][]byte {
	t.Helper()
	rows, err := database.Owner(t).Query(ctx,
		`SELECT l.id::text, e.hash FROM lanes l CROSS JOIN LATERAL lane_entries(l.workspace_id, l.id) e ORDER BY l.id, e.index`)
	if err != nil {
		t.Fatal(err)
	}
	lanes := map[string][][]byte{}
	var lane string
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&lane, &hash}, func() error {
		lanes[lane] = append(lanes[lane], slices.Clone(hash))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lanes
}

// holds reports whether a lane holds exactly these messages, each as it was sent.
func holds(lanes map[string][][]byte, messages []string) bool {
	for _, hashes := range lanes {
		if slices.EqualFunc(hashes, messages, func(hash []byte, message string) bool {
			sum := sha256.Sum256([]byte(message))
			return slices.Equal(hash, sum[:])
		}) {
			return true
		}
	}
	return false
}

// A client that edits an earlier message may reach a replica that has seen only the older part of
// the conversation. What it sends from then on is a lane of its own, and both lanes are whole.
func TestRewindOnReplicaThatIsBehindLosesNoMessage(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	r := startReplicas(t, database.OwnerURL, 2)
	ahead, behind := r.addresses[0], r.addresses[1]

	first := history("one", "ONE", "two", "TWO", "three", "THREE", "four")
	r.sayRaw(t.Context(), ahead, first[:1])
	r.sayRaw(t.Context(), behind, first[:3])
	r.sayRaw(t.Context(), ahead, first[:5])
	r.sayRaw(t.Context(), ahead, first)
	r.waitRecorded(database)

	edited := append(slices.Clone(first[:4]), history("three, edited", "THREE AGAIN", "four, edited", "FOUR AGAIN", "five, edited")...)
	for _, length := range []int{5, 7, 9} {
		r.sayRaw(t.Context(), behind, edited[:length])
	}
	r.waitRecorded(database)
	lanes := archived(t.Context(), t, database)
	if len(lanes) != 2 || !holds(lanes, first) || !holds(lanes, edited) {
		t.Errorf("%d lanes, the first history is whole: %t, the edited one: %t", len(lanes), holds(lanes, first), holds(lanes, edited))
	}
	var mixed int
	err := database.Owner(t).QueryRow(t.Context(), `SELECT count(*) FROM exchanges x JOIN lane_heads h USING (workspace_id)
		JOIN lanes l ON l.workspace_id = h.workspace_id AND l.id = h.lane_id
		WHERE h.position = x.position AND x.at = h.seen_at AND x.lane_id <> h.lane_id`).Scan(&mixed)
	if err != nil || mixed > 0 {
		t.Errorf("%d requests are listed with another lane than their messages: %v", mixed, err)
	}
}
