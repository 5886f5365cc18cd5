package billing

import (
	"errors"

	"github.com/stripe/stripe-go/v76"
)

// The kinds of failure that callers tell apart.
var (
	// ErrSignature says that a notice is not Stripe's, or too old, or from the future.
	ErrSignature = errors.New("notice is not signed by Stripe")

	// errVersion says that a notice has another form than the one we read.
	errVersion = errors.New("notice is of another API version")
)

// asStripe returns the answer of Stripe in an error.
func asStripe(err error) (*stripe.Error, bool) {
	failure, is := errors.AsType[*stripe.Error](err)
	return failure, is
}
