package recall

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	maxBody  = 256 << 10        // bytes of a request
	deadline = 20 * time.Second // of a call
)

// Config holds the server's dependencies. Every field but PublicURL and Log must be set.
type Config struct {
	Readers  tenants.Data
	Lanes    session.Records
	Archive  archive.Originals
	Searcher archive.Searcher

	// Behind reports whether messages that a workspace archived up to a time are missing from the index. The
	// zero time means now; asOf is the time used.
	Behind func(ctx context.Context, workspace tenants.WorkspaceID, upTo time.Time) (behind bool, asOf time.Time, err error)

	Codecs map[conversation.Format]wire.Codec

	PublicURL string // base URL for people and clients
	Log       *slog.Logger
	Now       func() time.Time

	// Observe is notified of each call when it has ended.
	Observe func(ctx context.Context, call Call)
}

// Caller is the sender of a request.
type Caller struct {
	Key     tenants.APIKey // of the request
	Session string         // limits all calls to one session, by id or by its client's name; "" for any
	EndUser string         // limits all calls to a user's sessions, in the form of session.EndUserID; "" for everyone's
}

// Call is one call of a tool, without its query and its results.
type Call struct {
	Caller Caller
	Tool   string
	// Outcome is "found", "nothing", "refused" for a call that its sender has to correct, or "failed".
	Outcome  string
	Hits     int // hits or messages
	Bytes    int // of the answer's text
	Duration time.Duration
	Err      error // cause of a failure
}

// Server is the MCP server. It is safe for concurrent use.
type Server struct {
	config  Config
	host    string // of PublicURL
	handler http.Handler
	origins *http.CrossOriginProtection
}

// New returns the server.
func New(config Config) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: config, origins: http.NewCrossOriginProtection()}
	if public, err := url.Parse(config.PublicURL); err == nil {
		s.host = public.Hostname()
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: "palimpsest", Title: "Palimpsest recall", Version: "1"},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}},
	)
	s.addSearch(server)
	s.addGet(server)
	s.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // isRebound knows the public host instead
	})
	return s
}

const instructions = `This server searches the archive of this workspace's conversations. Older parts of long conversations are shortened in your prompt; ` +
	`their originals are here, word for word. Use recall_search to find something that was said, done or printed earlier, and recall_get to read it in full.`

// callerKey is the context key of the Caller.
type callerKey struct{}

// Serve answers a request of a caller.
func (s *Server) Serve(w http.ResponseWriter, request *http.Request, caller Caller) {
	if err := s.origins.Check(request); err != nil || s.isRebound(request) {
		http.Error(w, "Requests from other sites' pages are refused.", http.StatusForbidden)
		return
	}
	s.handler.ServeHTTP(w, request.WithContext(context.WithValue(request.Context(), callerKey{}, caller)))
}

// isRebound reports whether a request reached a loopback address under a foreign host name: a page whose
// domain was pointed here. A reverse proxy on the same machine uses the public name.
func (s *Server) isRebound(request *http.Request) bool {
	local, _ := request.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	address, err := netip.ParseAddrPort(local.String())
	if err != nil || !address.Addr().Unmap().IsLoopback() {
		return false
	}
	host := (&url.URL{Host: request.Host}).Hostname()
	if strings.EqualFold(host, "localhost") || strings.EqualFold(host, s.host) {
		return false
	}
	named, err := netip.ParseAddr(host)
	return err != nil || !named.Unmap().IsLoopback()
}
