package tenants

import (
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

// ModelWindow is the context window of a model in one workspace, which holds in
// place of the one in the table of models.
type ModelWindow struct {
	Workspace WorkspaceID
	Model     string
	Tokens    int
	Source    WindowSource
	SetBy     uuid.UUID // uuid.Nil if it was learnt
	SetAt     time.Time
}
