package main

import (
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
)

// newValidator returns what judges a sent body as its provider would. The
// signatures of thinking in recorded can be checked by its provider only: those
// that stand in it are taken permanently, changed ones are not.
func newValidator(window int, recorded []byte) (func(conversation.Format, []byte) error, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, err
	}
	double := providerdouble.NewHandler(providerdouble.Config{Window: window, Count: counter.Count, AllowUnknown: true})
	double.Trust(recorded)
	return func(format conversation.Format, body []byte) error { return double.Validate(string(format), body) }, nil
}
