package session

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
)

// Records is what people read and change of recorded sessions. What the workspace does
// not have is ErrNotFound.
type Records interface {
	// Sessions returns a page, the most recently active first, or ErrCursor.
	Sessions(ctx context.Context, workspace tenants.WorkspaceID, filter Filter) (Page, error)

	// Counts returns how many sessions each part of the list has.
	Counts(ctx context.Context, workspace tenants.WorkspaceID, filter Filter) (Counts, error)

	// Active returns how many sessions have had a request since a time.
	Active(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (int, error)

	// IDs returns the sessions whose ids follow one, in order.
	IDs(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) ([]uuid.UUID, error)

	Session(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (Detail, error)

	// Delete deletes a session with its archive.
	Delete(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error

	// Erase deletes a part of what is kept of an end user, as EndUserID names them, and says of what. Nothing is
	// left once it deletes nothing. Of their requests from before a time nothing is recorded any more.
	Erase(ctx context.Context, tenant tenants.Tenant, user string, at time.Time) (Erased, error)

	// EndUserNames returns the applications' own ids of end users, of those whose own id is kept.
	EndUserNames(ctx context.Context, workspace tenants.WorkspaceID, users []string) (map[string]string, error)

	// Projection returns the newest projection of a lane, Epochs all of them.
	Projection(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (Projection, error)
	Epochs(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]EpochOverview, error)

	// Inserts returns what modules have put into a lane, by number.
	Inserts(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]Insert, error)

	// Newest returns, without its number, the newest request of a lane with so many
	// messages, else the newest.
	Newest(ctx context.Context, workspace tenants.WorkspaceID, id, lane uuid.UUID, messages int) (TimelineEntry, error)

	// Timeline returns how the prompts of a lane grew, in at most points moments.
	Timeline(ctx context.Context, workspace tenants.WorkspaceID, id, lane uuid.UUID, points int) (Timeline, error)

	// Totals returns what all requests of a session have come to.
	Totals(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (Totals, error)

	// Made counts what modules have made since a time.
	Made(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (Made, error)

	// Pins returns what is never compressed, by message.
	Pins(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]Pin, error)
	Pin(ctx context.Context, tenant tenants.Tenant, pin Pin) error
	Unpin(ctx context.Context, tenant tenants.Tenant, lane uuid.UUID, message int) error

	// Recorded returns the main conversations of the sessions that are picked, as they
	// are counted, the newest first.
	Recorded(ctx context.Context, workspace tenants.WorkspaceID, picked Selection) ([]Recorded, error)

	// Named returns the lane that a pointer leads to, in sessions that a reader may read and
	// within a session if one is given, or ErrNotFound.
	Named(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, within uuid.UUID, pointer archive.Pointer) (Named, error)

	// Names returns for each message of a lane a name of a history that holds it;
	// empty where none is on record.
	Names(ctx context.Context, workspace tenants.WorkspaceID, lanes []uuid.UUID, messages []int) ([]archive.Name, error)

	// SessionNamed returns the newest session that its client gave a name, of those that a
	// reader may read, or ErrNotFound.
	SessionNamed(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, name string) (uuid.UUID, error)

	// Ask makes the lane's next request compact it.
	Ask(ctx context.Context, tenant tenants.Tenant, lane uuid.UUID, order Order) error
}
