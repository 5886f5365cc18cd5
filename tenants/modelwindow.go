package tenants

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
)

// WindowSource is the source of a model's context window.
type WindowSource string

// The sources of a window.
const (
	WindowOverride WindowSource = "override" // set by a person
	WindowLearnt   WindowSource = "learnt"   // a provider named it when a prompt was too long
)

// The windows that can be set, in tokens.
const (
	MinModelWindow = 1_000
	MaxModelWindow = 100_000_000
)

// MaxModelName bounds a model's name, in bytes.
const MaxModelName = 200

// IsModelName reports whether a text is a valid model name: one line of at most MaxModelName bytes.
func IsModelName(text string) bool {
	return text != "" && len(text) <= MaxModelName && strings.TrimSpace(text) == text && isOneLine(text)
}

// ModelWindow is the context window of a model in one workspace, in place of the one in the table of models.
type ModelWindow struct {
	Workspace WorkspaceID
	Model     string
	Tokens    int
	Source    WindowSource
	SetBy     uuid.UUID // uuid.Nil if it was learned
	SetAt     time.Time
}

// ModelWindows stores the workspaces' context windows, which replace those in the table of models.
type ModelWindows interface {
	// ModelWindows returns all of them, set and learned.
	ModelWindows(ctx context.Context, workspace WorkspaceID) ([]ModelWindow, error)

	// SetModelWindow sets the window of a model.
	SetModelWindow(ctx context.Context, tenant Tenant, model string, tokens int, by uuid.UUID) (ModelWindow, error)

	// DeleteModelWindow returns ErrNotFound if a model has no window of its own.
	DeleteModelWindow(ctx context.Context, workspace WorkspaceID, model string) error
}
