package tenants

import (
	"database/sql/driver"

	"github.com/google/uuid"
)

// WorkspaceID names a tenant. All access to a tenant's data needs it. It is a uuid and has its text form, but
// its own type, so that the id of something else cannot be passed for it.
type WorkspaceID uuid.UUID //nolint:recvcheck // what reads one changes it, as uuid.UUID does

// NewWorkspaceID returns an id for a new workspace.
func NewWorkspaceID() WorkspaceID { return WorkspaceID(uuid.Must(uuid.NewV7())) }

// ParseWorkspaceID parses the output of String.
func ParseWorkspaceID(text string) (WorkspaceID, error) {
	id, err := uuid.Parse(text)
	return WorkspaceID(id), err
}

// IsZero reports whether the id is zero.
func (id WorkspaceID) IsZero() bool { return id == WorkspaceID{} }

// String implements fmt.Stringer.
func (id WorkspaceID) String() string { return uuid.UUID(id).String() }

// MarshalText implements encoding.TextMarshaler.
func (id WorkspaceID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *WorkspaceID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }

// MarshalBinary implements encoding.BinaryMarshaler.
func (id WorkspaceID) MarshalBinary() ([]byte, error) { return uuid.UUID(id).MarshalBinary() }

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (id *WorkspaceID) UnmarshalBinary(data []byte) error {
	return (*uuid.UUID)(id).UnmarshalBinary(data)
}

// Value implements driver.Valuer.
func (id WorkspaceID) Value() (driver.Value, error) { return uuid.UUID(id).Value() }

// Scan implements sql.Scanner.
func (id *WorkspaceID) Scan(from any) error { return (*uuid.UUID)(id).Scan(from) }
