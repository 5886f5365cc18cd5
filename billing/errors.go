package billing

import (
	"errors"

	"github.com/stripe/stripe-go/v76"
)

// Errors for callers.
var (
	// ErrSignature is the error for a notice that is not Stripe's, or too old, or from the future.
	ErrSignature = errors.New("notice is not signed by Stripe")

	// errVersion is the error for a notice of another API version.
	errVersion = errors.New("notice is of another API version")
)

// asStripe returns the Stripe error in an error.
func asStripe(err error) (*stripe.Error, bool) {
	failure, is := errors.AsType[*stripe.Error](err)
	return failure, is
}
