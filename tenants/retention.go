package tenants

import "strconv"

// MaxRetentionDays bounds a retention, in days: a hundred years.
const MaxRetentionDays = 36_500

// Retention is how long a workspace keeps its sessions.
type Retention struct {
	Days int // after which an unused session is deleted with all its data; 0: never
}

// Validate returns Invalid for an invalid number of days.
func (r Retention) Validate() error {
	if r.Days < 0 || r.Days > MaxRetentionDays {
		return Invalid{Field: "days", Message: "must be a whole number from 0 (keep for ever) to 36500"}
	}
	return nil
}

// Fields returns the retention's fields for the audit log.
func (r Retention) Fields() Fields { return Fields{"days": strconv.Itoa(r.Days)} }
