package wire

// Invalid says what is wrong with a request body, in words that help its sender.
type Invalid struct {
	Member  string // path of the member at fault, "messages.3.content"; empty: the body itself
	Message string // what was found or is expected
	IsLarge bool   // the body holds too much of something, rather than something wrong
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
