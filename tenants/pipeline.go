package tenants

import (
	"time"

	"github.com/google/uuid"
)

// PipelineConfig is one saved version of a workspace's pipeline.
type PipelineConfig struct {
	Workspace WorkspaceID
	Version   int    // 1 for the first saved one; 0: the default, nothing saved yet
	Modules   string // the modules in order, comma-separated; empty: the default pipeline
	YAML      string // settings that differ from the defaults
	SavedBy   uuid.UUID
	Author    string // who that is: an e-mail address or an API key's name, in lists only; empty: they left, or the product
	SavedAt   time.Time
}

// Fields returns what the audit log shows of a config; nil where nothing was saved.
func (c PipelineConfig) Fields() Fields {
	if c.Version == 0 {
		return nil
	}
	return Fields{"modules": c.Modules, "settings": c.YAML}
}
