package tenants

import "github.com/google/uuid"

// ResendTag is the name of the tag of requests that were sent again from the dashboard. Its
// value is the id of the first request.
const ResendTag = "sent-again"

// Resend is a request that is sent again.
type Resend struct {
	Of       uuid.UUID // the first request
	Endpoint string
	Body     []byte
}

// SentAgain returns the id of the request that an exchange sends again; uuid.Nil if it
// sends none again.
func (e *Exchange) SentAgain() uuid.UUID {
	id, err := uuid.Parse(e.Tags[ResendTag])
	if err != nil {
		return uuid.Nil
	}
	return id
}
