package session

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
)

// Records reads and changes recorded sessions for people. It returns ErrNotFound for records that the
// workspace doesn't have.
type Records interface {
	// Sessions returns a page, the most recently active first, or ErrCursor.
	Sessions(ctx context.Context, workspace tenants.WorkspaceID, filter Filter) (Page, error)

	// Counts returns how many sessions each part of the list has.
	Counts(ctx context.Context, workspace tenants.WorkspaceID, filter Filter) (Counts, error)

	// Active returns how many sessions have had a request since a time.
	Active(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (int, error)

	// IDs returns the sessions whose ids follow after, in order.
	IDs(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) ([]uuid.UUID, error)

	Session(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (Detail, error)

	// Delete deletes a session with its archive.
	Delete(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error

	// Erase deletes a part of an end user's data, by EndUserID, and returns the counts. It is finished once
	// it deletes nothing. Requests from before at are not recorded afterwards.
	Erase(ctx context.Context, tenant tenants.Tenant, user string, at time.Time) (Erased, error)

	// EndUserNames returns the applications' own ids of end users, if they are kept.
	EndUserNames(ctx context.Context, workspace tenants.WorkspaceID, users []string) (map[string]string, error)

	// Projection returns the newest projection of a lane, Projections all of them, and Epochs the same without
	// their text.
	Projection(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (Projection, error)
	Projections(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]Projection, error)
	Epochs(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]EpochOverview, error)

	// Inserts returns a lane's inserts by number.
	Inserts(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]Insert, error)

	// Newest returns a lane's newest request with the given number of messages, or else its newest request,
	// without its number.
	Newest(ctx context.Context, workspace tenants.WorkspaceID, id, lane uuid.UUID, messages int) (TimelineEntry, error)

	// Timeline returns the growth of a lane's prompts in at most points moments.
	Timeline(ctx context.Context, workspace tenants.WorkspaceID, id, lane uuid.UUID, points int) (Timeline, error)

	// Totals returns the sums of all requests of a session.
	Totals(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (Totals, error)

	// Made counts the inserts and summaries since a time.
	Made(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (Made, error)

	// Pins returns a lane's pins by message.
	Pins(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]Pin, error)
	Pin(ctx context.Context, tenant tenants.Tenant, pin Pin) error
	Unpin(ctx context.Context, tenant tenants.Tenant, lane uuid.UUID, message int) error

	// PinSession pins a whole session, and UnpinSession ends that.
	PinSession(ctx context.Context, tenant tenants.Tenant, id, by uuid.UUID) error
	UnpinSession(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error

	// Recorded returns the main conversations of the picked sessions with their token counts, newest first.
	Recorded(ctx context.Context, workspace tenants.WorkspaceID, picked Selection) ([]Recorded, error)

	// Named returns the lane of a pointer, limited to sessions that a reader may read and to a session if one
	// is given. It returns ErrNotFound if there is no such lane.
	Named(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, within uuid.UUID, pointer archive.Pointer) (Named, error)

	// Names returns for each message of a lane the name of a history that holds it, or "" without a record.
	Names(ctx context.Context, workspace tenants.WorkspaceID, lanes []uuid.UUID, messages []int) ([]archive.Name, error)

	// SessionNamed returns the newest session with the client's name for it that a reader may read, or
	// ErrNotFound.
	SessionNamed(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, name string) (uuid.UUID, error)

	// Ask makes the lane's next request compact it.
	Ask(ctx context.Context, tenant tenants.Tenant, lane uuid.UUID, order Order) error
}
