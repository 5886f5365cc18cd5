package tenants_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

const oneWorkspace = "5eed0000-0000-4000-8000-000000000001"

// Whatever an id is written to has the bytes that it had when the id was a plain uuid.
func TestAWorkspaceIDIsWrittenAsAUUID(t *testing.T) {
	t.Parallel()
	plain := uuid.MustParse(oneWorkspace)
	id, err := tenants.ParseWorkspaceID(oneWorkspace)
	if err != nil || id != tenants.WorkspaceID(plain) {
		t.Fatalf("read as %v, %v", id, err)
	}
	for name, write := range map[string]func(id any) string{
		"text": func(id any) string { return fmt.Sprintf("%s %v %q %x %+v", id, id, id, id, []any{id}) },
		"JSON": func(id any) string { return jsonOf(t, map[string]any{"id": id, "ids": []any{id}}) },
		"a log": func(id any) string {
			return logOf(func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, bare()) }, id)
		},
		"a JSON log": func(id any) string {
			return logOf(func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, bare()) }, id)
		},
	} {
		if got, want := write(id), write(plain); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got, want := jsonOf(t, map[tenants.WorkspaceID]int{id: 1}), jsonOf(t, map[uuid.UUID]int{plain: 1}); got != want {
		t.Errorf("key of a JSON object: %s, want %s", got, want)
	}
	text, textErr := id.MarshalText()
	binary, binaryErr := id.MarshalBinary()
	value, valueErr := id.Value()
	if textErr != nil || binaryErr != nil || valueErr != nil || string(text) != oneWorkspace || !bytes.Equal(binary, plain[:]) || value != oneWorkspace {
		t.Errorf("%q %x %v, %v %v %v", text, binary, value, textErr, binaryErr, valueErr)
	}
}

func TestAWorkspaceIDIsReadAsAUUID(t *testing.T) {
	t.Parallel()
	want := uuid.MustParse(oneWorkspace)
	for name, read := range map[string]func(id *tenants.WorkspaceID) error{
		"text":                 func(id *tenants.WorkspaceID) error { return id.UnmarshalText([]byte(oneWorkspace)) },
		"bytes":                func(id *tenants.WorkspaceID) error { return id.UnmarshalBinary(want[:]) },
		"JSON":                 func(id *tenants.WorkspaceID) error { return json.Unmarshal([]byte(`"`+oneWorkspace+`"`), id) },
		"text of the database": func(id *tenants.WorkspaceID) error { return id.Scan(oneWorkspace) },
		"the database's bytes": func(id *tenants.WorkspaceID) error { return id.Scan(want[:]) },
	} {
		var id tenants.WorkspaceID
		if err := read(&id); err != nil || id != tenants.WorkspaceID(want) {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	if id, err := tenants.ParseWorkspaceID("x"); err == nil {
		t.Errorf("x is read as %v", id)
	}
}

func TestAWorkspaceIDMayNameNone(t *testing.T) {
	t.Parallel()
	if id := (tenants.WorkspaceID{}); !id.IsZero() || tenants.NewWorkspaceID().IsZero() {
		t.Error("zero is an id, or an id zero")
	}
	got := jsonOf(t, struct {
		ID tenants.WorkspaceID `json:"id,omitzero"`
	}{})
	if got != "{}" {
		t.Errorf("zero is written as %s", got)
	}
	var id tenants.WorkspaceID
	if err := id.Scan(nil); err != nil || !id.IsZero() {
		t.Errorf("NULL is read as %v, %v", id, err)
	}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bare has a line of a log say no time.
func bare() *slog.HandlerOptions {
	return &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
}

func logOf(handler func(*bytes.Buffer) slog.Handler, id any) string {
	var line bytes.Buffer
	slog.New(handler(&line)).Info("done", "workspace", id)
	return line.String()
}
