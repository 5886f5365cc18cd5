package tenants

import "github.com/google/uuid"

// ResendTag tags requests that were resent from the dashboard. Its value is the id of the first request.
const ResendTag = "sent-again"

// Resend is a resent request.
type Resend struct {
	Of       uuid.UUID // the first request
	Endpoint string
	Body     []byte
}

// SentAgain returns the id of the request that an exchange resends; uuid.Nil if it is not a resend.
func (e *Exchange) SentAgain() uuid.UUID {
	id, err := uuid.Parse(e.Tags[ResendTag])
	if err != nil {
		return uuid.Nil
	}
	return id
}
