package live_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"palimpsest/tenants"
	"palimpsest/web/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is a hub with a server of its streams; a reader names their workspace.
type bundle struct {
	hub    *live.Hub
	server *httptest.Server
	url    string
	ended  atomic.Bool // the reader's login
	away   atomic.Bool // what says whether it has
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{hub: live.NewHub()}
	handler := live.New(b.hub, func(echo.Context, tenants.Principal) error {
		switch {
		case b.ended.Load():
			return tenants.ErrLoginEnded
		case b.away.Load():
			return errors.New("the database does not answer")
		}
		return nil
	}).Every(5 * time.Millisecond)
	e := echo.New()
	e.GET("/live/:workspace", func(c echo.Context) error {
		visible := tenants.Visible{All: true}
		if apiKey := c.QueryParam("key"); apiKey != "" {
			visible = tenants.Visible{Keys: []uuid.UUID{uuid.MustParse(apiKey)}}
		}
		c.SetRequest(c.Request().WithContext(tenants.WithVisible(c.Request().Context(), visible)))
		return handler.Stream(c, tenants.Principal{Workspace: tenants.Workspace{ID: tenants.WorkspaceID(uuid.MustParse(c.Param("workspace")))}})
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	t.Cleanup(b.hub.Close)
	b.server, b.url = server, server.URL
	return b
}

// reader is an open stream.
type reader struct {
	t     *testing.T
	lines *bufio.Scanner
	leave context.CancelFunc
}

func (b *bundle) open(t *testing.T, workspace tenants.WorkspaceID) *reader {
	t.Helper()
	return b.openAt(t, workspace.String())
}

func (b *bundle) openAt(t *testing.T, path string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/live/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d, %s", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	r := &reader{t: t, lines: bufio.NewScanner(answer.Body), leave: cancel}
	if line := r.line(); line != ": open" {
		t.Fatalf("a stream begins with %q", line)
	}
	return r
}

// line returns the next line; empty at the end of the stream.
func (r *reader) line() string {
	for r.lines.Scan() {
		if r.lines.Text() != "" {
			return r.lines.Text()
		}
	}
	return ""
}

// event returns the next event with its data, past what keeps the stream open.
func (r *reader) event() string {
	r.t.Helper()
	for {
		line := r.line()
		if name, is := strings.CutPrefix(line, "event: "); is {
			return name + " " + strings.TrimSpace(strings.TrimPrefix(r.line(), "data:"))
		}
		if line == "" {
			return "over"
		}
	}
}

func TestStreamTellsItsOwnWorkspaceAndNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ours, theirs := tenants.NewWorkspaceID(), uuid.New()
	reader := b.open(t, ours)

	apiKey := "/" + uuid.NewString() + "/"
	b.hub.Told(theirs.String() + apiKey + "7")
	b.hub.Told("nonsense")
	b.hub.Told(ours.String() + apiKey + "many")
	b.hub.Told(ours.String() + apiKey + "3")
	if got := reader.event(); got != "exchanges 3" {
		t.Errorf("told %q", got)
	}
	b.hub.Missed()
	if got := reader.event(); got != "missed" && got != "missed " {
		t.Errorf("told %q", got)
	}
}

// S55: others' requests are not even counted for someone who may not see them.
func TestStreamCountsOnlyVisibleRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workspace, own := tenants.NewWorkspaceID(), uuid.New()
	reader := b.openAt(t, workspace.String()+"?key="+own.String())

	b.hub.Happened(workspace, uuid.New(), 5)
	b.hub.Happened(workspace, own, 2)
	if got := reader.event(); got != "exchanges 2" {
		t.Errorf("told %q", got)
	}
}

func TestSlowReaderIsToldTheSumAndKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workspace := tenants.NewWorkspaceID()
	reader := b.open(t, workspace)

	const each = 1000
	for range each {
		b.hub.Happened(workspace, uuid.Nil, 1)
	}
	total := 0
	for total < each {
		var n int
		name, count, _ := strings.Cut(reader.event(), " ")
		for _, digit := range count {
			n = 10*n + int(digit-'0')
		}
		if name != "exchanges" || n == 0 {
			t.Fatalf("told %s %s", name, count)
		}
		total += n
	}
	if total != each {
		t.Errorf("told of %d exchanges", total)
	}
}

func TestSilentStreamSaysThatItIsThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reader := b.open(t, tenants.NewWorkspaceID())

	for range 3 {
		if line := reader.line(); line != ":" {
			t.Errorf("a silent stream says %q", line)
		}
	}
}

func TestStreamEndsWithTheLogin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workspace := tenants.NewWorkspaceID()
	reader := b.open(t, workspace)

	b.hub.Recheck() // of someone else's login
	b.hub.Happened(workspace, uuid.Nil, 1)
	if got := reader.event(); got != "exchanges 1" {
		t.Errorf("told %q", got)
	}
	b.ended.Store(true)
	b.hub.Recheck()
	if got := reader.event(); strings.TrimSpace(got) != "end" {
		t.Errorf("told %q", got)
	}
	if got := reader.event(); got != "over" {
		t.Errorf("after the end: %q", got)
	}
}

// S9: where it cannot be said whether the reader is still logged in, the stream ends; the page then
// asks for another one.
func TestStreamEndsWhereTheLoginCannotBeChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workspace := tenants.NewWorkspaceID()
	reader := b.open(t, workspace)

	b.away.Store(true)
	b.hub.Recheck()
	b.hub.Happened(workspace, uuid.Nil, 1)
	if got := reader.event(); got != "over" {
		t.Errorf("told %q", got)
	}
	if b.hub.Open() != 0 {
		t.Errorf("%d streams are open", b.hub.Open())
	}
}

func TestStreamsEndWhenTheProcessStopsAndNoNewOneBegins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reader := b.open(t, tenants.NewWorkspaceID())

	b.hub.Close()
	b.hub.Close()
	if got := reader.event(); got != "over" {
		t.Errorf("told %q", got)
	}
	answer, err := http.Get(b.url + "/live/" + uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("a stream while stopping: %d", answer.StatusCode)
	}
}

func TestStreamsDoNotHoldUpAGracefulStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Config.RegisterOnShutdown(b.hub.Close)
	reader := b.open(t, tenants.NewWorkspaceID())

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.server.Config.Shutdown(ctx); err != nil {
		t.Errorf("the server stops with %v", err)
	}
	if got := reader.event(); got != "over" {
		t.Errorf("told %q", got)
	}
}

func TestStreamsOfAWorkspaceAreBoundedAndTheirPlacesComeBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workspace := tenants.NewWorkspaceID()
	var readers []*reader
	for range 100 {
		readers = append(readers, b.open(t, workspace))
	}
	answer, err := http.Get(b.url + "/live/" + workspace.String())
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable || b.hub.Open() != 100 {
		t.Errorf("one too many: %d with %d open", answer.StatusCode, b.hub.Open())
	}
	b.open(t, tenants.NewWorkspaceID()) // others have places of their own
	b.ended.Store(true)
	b.hub.Recheck()
	for _, reader := range readers {
		if got := reader.event(); strings.TrimSpace(got) != "end" || reader.event() != "over" {
			t.Errorf("told %q", got)
		}
	}
	b.ended.Store(false)
	b.open(t, workspace)
}

func TestStreamsOfTheProcessAreBounded(t *testing.T) {
	t.Parallel()
	hub := live.NewHub()
	var ends []func()
	for len(ends) < 2000 {
		end, err := hub.Subscribe(tenants.NewWorkspaceID())
		if err != nil {
			t.Fatalf("stream %d: %v", len(ends)+1, err)
		}
		ends = append(ends, end)
	}
	if _, err := hub.Subscribe(tenants.NewWorkspaceID()); err == nil {
		t.Error("one stream too many begins")
	}
	ends[0]()
	if _, err := hub.Subscribe(tenants.NewWorkspaceID()); err != nil || hub.Open() != 2000 {
		t.Errorf("in place of one that ended: %v, %d are open", err, hub.Open())
	}
}
