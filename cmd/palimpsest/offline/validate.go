package offline

import (
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
)

// newValidator returns a function that judges a sent body as its provider would. Only the provider can
// check signatures of thinking, so it accepts those found in recorded and rejects changed ones.
func newValidator(window int, recorded []byte) (func(conversation.Format, []byte) error, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, err
	}
	double := providerdouble.NewHandler(providerdouble.Config{Window: window, Count: counter.Count, AllowUnknown: true})
	double.Trust(recorded)
	return func(format conversation.Format, body []byte) error { return double.Validate(string(format), body) }, nil
}
