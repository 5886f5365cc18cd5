package tenants

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
)

// WindowSource says where a model's context window comes from.
type WindowSource string

// The sources of a window.
const (
	WindowOverride WindowSource = "override" // someone set it
	WindowLearnt   WindowSource = "learnt"   // a provider named it when a prompt was too long
)

// The windows that can be set, in tokens.
const (
	MinModelWindow = 1_000
	MaxModelWindow = 100_000_000
)

// MaxModelName bounds a model's name, in bytes.
const MaxModelName = 200

// IsModelName reports whether a text can be a model's name: one line of at most MaxModelName bytes.
func IsModelName(text string) bool {
	return text != "" && len(text) <= MaxModelName && strings.TrimSpace(text) == text && isOneLine(text)
}

// ModelWindow is the context window of a model in one workspace, which holds in
// place of the one in the table of models.
type ModelWindow struct {
	Workspace WorkspaceID
	Model     string
	Tokens    int
	Source    WindowSource
	SetBy     uuid.UUID // uuid.Nil if it was learned
	SetAt     time.Time
}

// ModelWindows keeps the context windows that hold for a workspace in place of
// those in the table of models.
type ModelWindows interface {
	// ModelWindows returns all of them, set and learned.
	ModelWindows(ctx context.Context, workspace WorkspaceID) ([]ModelWindow, error)

	// SetModelWindow sets that of a model.
	SetModelWindow(ctx context.Context, tenant Tenant, model string, tokens int, by uuid.UUID) (ModelWindow, error)

	// DeleteModelWindow returns ErrNotFound if a model has no window of its own.
	DeleteModelWindow(ctx context.Context, workspace WorkspaceID, model string) error
}
