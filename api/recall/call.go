package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// refusal is an error that the model can act on.
type refusal string

func (r refusal) Error() string { return string(r) }

// errFailed tells a model about one of our failures.
const errFailed = refusal("The archive could not be read just now. Nothing is lost; try again in a moment.")

// errAway tells a model that the bucket with the originals does not answer.
const errAway = refusal("The bucket that holds the originals does not answer. Nothing is lost. Go on without it, or try again in 30 seconds.")

// answer is a tool's result, for programs and as text.
type answer[Out any] struct {
	output Out
	text   string
	hits   int
}

// errNoText tells a model that its key has no right to read messages.
const errNoText = refusal("This API key may not read what was said in this workspace: the person behind it may not, or has left. An owner or admin of the workspace changes that under Settings. Go on without the archive.")

// asker is a caller and their rights to read.
type asker struct {
	Caller

	workspace tenants.WorkspaceID
	reader    tenants.Reader
}

// asker returns a caller with their current rights to read, limited to the request's end user. It refuses a
// caller without any.
func (s *Server) asker(ctx context.Context, caller Caller) (asker, error) {
	reader, err := s.config.Readers.KeyReader(ctx, caller.Key)
	if err == nil && reader.None() {
		err = errNoText
	}
	reader.EndUser = caller.EndUser
	return asker{caller, caller.Key.Workspace, reader}, err
}

// call runs a tool for the caller of a request, within the deadline, and reports the call.
func call[Out any](ctx context.Context, s *Server, tool string, run func(context.Context, asker) (answer[Out], error)) (*mcp.CallToolResult, Out, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	caller, _ := ctx.Value(callerKey{}).(Caller)
	done := Call{Caller: caller, Tool: tool, Outcome: "found"}
	began := s.config.Now()
	var got answer[Out]
	from, err := s.asker(ctx, caller)
	if err == nil {
		got, err = run(ctx, from)
	}
	done.Duration = s.config.Now().Sub(began)
	done.Hits, done.Bytes = got.hits, len(got.text)
	var refused refusal
	switch {
	case errors.As(err, &refused):
		done.Outcome, err = "refused", refused
	case errors.Is(err, archive.ErrAway):
		done.Outcome, done.Err, err = "failed", err, errAway
	case err != nil:
		done.Outcome, done.Err, err = "failed", err, errFailed
	case got.hits == 0:
		done.Outcome = "nothing"
	}
	s.config.Observe(ctx, done)
	if err != nil {
		return nil, got.output, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: got.text}}}, got.output, nil
}

// within returns the session that a call is limited to: the caller's, or the one in the call; uuid.Nil
// without either.
func (s *Server) within(ctx context.Context, caller asker, named string) (uuid.UUID, error) {
	limit, err := s.session(ctx, caller, caller.Session)
	if err != nil || named == "" {
		return limit, err
	}
	asked, err := s.session(ctx, caller, named)
	if err == nil && limit != uuid.Nil && asked != limit {
		err = refusal("This connection is limited to one session by its header X-Palimpsest-Session-Id. Leave session out.")
	}
	return asked, err
}

// session returns the id of a session, given its id or its client's name for it. Sessions that the caller may
// not read count as absent.
func (s *Server) session(ctx context.Context, caller asker, named string) (uuid.UUID, error) {
	named = strings.TrimSpace(named)
	if named == "" {
		return uuid.Nil, nil
	}
	id, err := s.config.Lanes.SessionNamed(ctx, caller.workspace, caller.reader, named)
	if errors.Is(err, session.ErrNotFound) {
		if id, err = uuid.Parse(named); err != nil {
			return uuid.Nil, refusal(fmt.Sprintf("There is no session %q in this workspace. Use the session of a hit of recall_search, or leave session out.", named))
		}
	}
	return id, err
}

// schemaOf returns the schema of a tool's arguments with more bounds. It panics for unsupported types, since
// those are a bug.
func schemaOf[In any](bound func(properties map[string]*jsonschema.Schema)) *jsonschema.Schema {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("recall: schema of arguments: %v", err))
	}
	bound(schema.Properties)
	return schema
}

// reads are the annotations of tools that only read.
func reads(title string) *mcp.ToolAnnotations {
	closed := false
	return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed}
}
