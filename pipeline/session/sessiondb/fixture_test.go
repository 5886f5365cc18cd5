package sessiondb_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// fixture is a database with one workspace.
type fixture struct {
	db      *dbtest.Database
	runner  batchdb.TxRunner
	store   *sessiondb.Store
	archive *archivedb.DB
	scope   session.Scope
}

func setup(t testing.TB) *fixture {
	t.Helper()
	db := dbtest.New(t)
	runner := db.DB
	return &fixture{
		db: db, runner: runner, store: sessiondb.New(runner, archivetest.Keys()), archive: archivedb.New(runner, archivetest.Keys()),
		scope: session.Scope{Workspace: addWorkspace(t, runner), APIKey: uuid.New(), Format: conversation.Anthropic},
	}
}

func addWorkspace(t testing.TB, runner batchdb.TxRunner) tenants.WorkspaceID {
	t.Helper()
	id := tenants.NewWorkspaceID()
	err := runner.InTenant(t.Context(), id, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'test')", id).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// client is one client run: its history grows, and each request is an exchange.
type client struct {
	f        *fixture
	session  uuid.UUID
	lane     uuid.UUID
	messages [][]byte
	chain    []conversation.Hash // chain[i] is the link after i messages
	recorded int                 // messages that an exchange has named
	named    bool                // the session has a name of its own
}

func (f *fixture) newClient() *client {
	return &client{f: f, session: uuid.New(), lane: uuid.New(), chain: []conversation.Hash{sha256.Sum256([]byte(uuid.NewString()))}}
}

func (c *client) say(messages ...string) {
	for _, message := range messages {
		c.messages = append(c.messages, []byte(message))
		c.chain = append(c.chain, conversation.Extend(c.chain[len(c.chain)-1], sha256.Sum256([]byte(message))))
	}
}

// seen returns what the next exchange adds.
func (c *client) update() session.Update {
	update := session.Update{
		Scope: c.f.scope, Session: c.session, Lane: c.lane, Naming: session.Naming{Name: "run-1", Source: "header"},
		Title: "Fix the parser", Client: "claude-code", Model: "claude-sonnet-4-5",
		At: time.Now(), Messages: session.Messages{Position: len(c.messages), Head: c.chain[len(c.messages)]},
		Increment: session.Increment{Exchanges: 1, TokensBefore: 100, TokensAfter: 60, NetMicroUSD: -7, Reach: true},
	}
	if c.recorded < len(c.messages) {
		update.Messages.Links = c.chain[c.recorded:]
	}
	for i := c.recorded; i < len(c.messages); i++ {
		update.Messages.Entries = append(update.Messages.Entries, archive.Entry{
			Index: i, Hash: sha256.Sum256(c.messages[i]), Role: roleOf(c.messages[i]), Tokens: 5, Raw: c.messages[i], Size: len(c.messages[i]),
		})
	}
	c.recorded = len(c.messages)
	return update
}

// roleOf returns who says a message: the user, where it does not say.
func roleOf(message []byte) conversation.Role {
	if bytes.Contains(message, []byte(`"role":"assistant"`)) {
		return conversation.Assistant
	}
	return conversation.User
}

func (c *client) record(t *testing.T) {
	t.Helper()
	if err := c.f.store.Record(t.Context(), c.f.scope.Workspace, []session.Update{c.update()}); err != nil {
		t.Fatal(err)
	}
}

// projection returns one that stands for the first messages.
func (c *client) projection(number, covers int) session.Projection {
	return session.Projection{
		Number: number, Covers: covers, Chain: c.chain[covers], Reason: "target", Before: 90_000, After: 40_000,
		At:          time.Now().UTC(),
		Certificate: session.Certificate{{What: "orders", All: 3, InPrompt: 2, Archived: 1}},
		Parts: []session.Part{
			{From: 0, To: 1, Tokens: 5, Messages: 1},
			{From: 1, To: covers, Level: 2, Raw: json.RawMessage(fmt.Sprintf("{\"epoch\": %d},\n {\"x\":\"\xff\\u00e9\"}", number)), Tokens: 9, Messages: 2},
		},
	}
}

func (c *client) commit(t *testing.T, projection session.Projection) {
	t.Helper()
	if err := c.f.store.Commit(t.Context(), c.update(), projection); err != nil {
		t.Fatal(err)
	}
}

// find looks the client's whole history up, as a process that has just started does.
func (c *client) find(t *testing.T) session.Found {
	t.Helper()
	found, err := sessiondb.New(c.f.runner, archivetest.Keys()).Find(t.Context(), c.f.scope.Workspace, c.chain[1:])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// conversationOf returns a client that has said some messages.
func (f *fixture) conversationOf(messages int) *client {
	c := f.newClient()
	for i := range messages {
		c.say(fmt.Sprintf(`{"role":"user","content":"message %d of %s"}`, i, c.lane))
	}
	return c
}

func (f *fixture) count(t *testing.T, table string) int {
	t.Helper()
	var count int
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Table(table).Select("count(*)").Where("workspace_id = ?", f.scope.Workspace).Scan(&count).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}
