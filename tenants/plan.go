package tenants

import (
	"errors"
	"time"
)

// ErrBillingOff says that an installation has no billing: there is nothing to buy.
var ErrBillingOff = errors.New("billing is off")

// Reason says why something holds back a workspace's traffic from the modules.
type Reason string

// The reasons of a restraint.
const (
	Unrestrained  Reason = ""
	PaymentFailed Reason = "payment" // and the days of grace are over
	QuotaUsed     Reason = "quota"   // of a month, on the plan Free
)

// Restraint says whether a workspace's requests pass without any module. They are
// never refused for it.
type Restraint struct {
	Reason Reason
	Since  time.Time // zero for Unrestrained
}
