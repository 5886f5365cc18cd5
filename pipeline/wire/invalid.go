package wire

// Invalid is a fault of a request body, in words that help its sender.
type Invalid struct {
	Member  string // path of the faulty member, "messages.3.content"; "" for the body itself
	Message string // the value found or the one expected
	IsLarge bool   // the body is too large in some way, rather than wrong
}

// Error returns the member and the message.
func (i *Invalid) Error() string {
	if i.Member == "" {
		return i.Message
	}
	return i.Member + ": " + i.Message
}

// Interface guard.
var _ error = (*Invalid)(nil)
