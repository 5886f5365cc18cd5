package recall_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/recall"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// known has every archive that a pointer names.
type known struct{ session.Records }

// Named implements session.Records.
func (known) Named(context.Context, tenants.WorkspaceID, tenants.Reader, uuid.UUID, archive.Pointer) (session.Named, error) {
	return session.Named{}, nil
}

// everything lets every key read everything.
type everything struct{ tenants.Data }

// KeyReader implements tenants.Data.
func (everything) KeyReader(context.Context, tenants.APIKey) (tenants.Reader, error) {
	return tenants.Reader{All: true}, nil
}

// broken is an archive that cannot be read.
type broken struct{ err error }

// Originals implements archive.Originals.
func (b broken) Originals(context.Context, tenants.WorkspaceID, uuid.UUID, int, int) ([]archive.Entry, error) {
	return nil, b.err
}

// A model is told what to do while the archive cannot be read, and never the cause; the log is.
func TestModelIsToldWhatToDoWhileTheArchiveCannotBeRead(t *testing.T) {
	t.Parallel()
	for words, cause := range map[string]error{
		"The bucket that holds the originals does not answer.": fmt.Errorf("%w: dial bucket.internal", archive.ErrAway),
		"The archive could not be read just now.":              errors.New("connection to db.internal was reset"),
	} {
		var observed recall.Call
		server := recall.New(recall.Config{
			Readers: everything{}, Lanes: known{}, Archive: broken{cause}, Now: time.Now, Observe: func(_ context.Context, call recall.Call) { observed = call },
		})
		answer := serve(t, server, `"recall_get","arguments":{"pointer":"k7f2m7qa#2"}`)
		body, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(body), words) || strings.Contains(string(body), "internal") {
			t.Errorf("%v: %d %s (%v)", cause, answer.Code, body, err)
		}
		if observed.Outcome != "failed" || !errors.Is(observed.Err, cause) {
			t.Errorf("%v: observed %+v", cause, observed)
		}
	}
}

// serve returns what a server answers to the call of a tool, its name and what follows it in JSON.
func serve(t *testing.T, server *recall.Server, call string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`+call+`}}`))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	answer := httptest.NewRecorder()
	server.Serve(answer, request, recall.Caller{Key: tenants.APIKey{Workspace: tenants.NewWorkspaceID()}})
	return answer
}
