package tenants

import (
	"errors"
	"time"
)

// ErrBillingOff says that the installation has no billing, so that plans cannot be bought.
var ErrBillingOff = errors.New("billing is off")

// Reason is why a workspace's requests skip the modules.
type Reason string

// The reasons of a restraint.
const (
	Unrestrained  Reason = ""
	PaymentFailed Reason = "payment" // and the grace period is over
	QuotaUsed     Reason = "quota"   // of a month, on the plan Free
)

// Restraint makes a workspace's requests pass without any module. It never refuses them.
type Restraint struct {
	Reason Reason
	Since  time.Time // zero for Unrestrained
}
