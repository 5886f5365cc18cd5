package session

import (
	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Named is the lane that a pointer into the archive leads to.
type Named struct {
	Session uuid.UUID
	Lane    uuid.UUID
	Format  conversation.Format // of its messages
}
