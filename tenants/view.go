package tenants

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// ViewList names a list whose filters people save.
type ViewList string

// The lists that have views.
const (
	SessionViews ViewList = "sessions"
	RequestViews ViewList = "requests"
)

// The bounds of views.
const (
	MaxViews     = 50   // that someone has of one list in one workspace
	MaxViewName  = 60   // characters
	MaxViewQuery = 4096 // bytes
)

// View is what someone narrows a list to, under a name of their own. No one else in
// the workspace sees it, but in an export of everything.
type View struct {
	ID      uuid.UUID
	User    uuid.UUID // whose it is
	List    ViewList
	Name    string // one of a person's views of a list has it
	Query   string // the filters as an address has them, in the order of their names
	SavedAt time.Time
}

// Check returns Invalid for a view that cannot be saved.
func (v View) Check() error {
	if _, err := CheckName("name", v.Name, MaxViewName); err != nil {
		return err
	}
	switch {
	case v.Query == "":
		return Invalid{Field: "query", Message: "must not be empty: narrow the list first"}
	case len(v.Query) > MaxViewQuery:
		return Invalid{Field: "query", Message: fmt.Sprintf("are %d bytes long; a view holds %d", len(v.Query), MaxViewQuery)}
	}
	return nil
}

// Views keeps how each person looks at lists.
type Views interface {
	// Views returns a person's views of a list, by name.
	Views(ctx context.Context, workspace WorkspaceID, user uuid.UUID, list ViewList) ([]View, error)

	// SaveView adds a view or, if the person has one of the name, gives it other
	// filters. It returns an Invalid for what cannot be saved.
	SaveView(ctx context.Context, workspace WorkspaceID, user uuid.UUID, view View) (View, error)

	// DeleteView returns ErrNotFound for what the person does not have.
	DeleteView(ctx context.Context, workspace WorkspaceID, user uuid.UUID, list ViewList, id uuid.UUID) error

	// EveryView returns the views of all people whose ids follow one, in order.
	EveryView(ctx context.Context, workspace WorkspaceID, after uuid.UUID, limit int) ([]View, error)

	// HiddenColumns returns which columns of a list a person has hidden.
	HiddenColumns(ctx context.Context, workspace WorkspaceID, user uuid.UUID, list ViewList) ([]string, error)
	HideColumns(ctx context.Context, workspace WorkspaceID, user uuid.UUID, list ViewList, hidden []string) error
}
