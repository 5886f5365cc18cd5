package tenants

import "strconv"

// MaxRetentionDays bounds a retention, in days: a hundred years.
const MaxRetentionDays = 36_500

// Retention says for how long a workspace keeps its sessions.
type Retention struct {
	Days int // after which a session that was not used is deleted with everything of it; 0: never
}

// Validate returns Invalid for a number of days that cannot be set.
func (r Retention) Validate() error {
	if r.Days < 0 || r.Days > MaxRetentionDays {
		return Invalid{Field: "days", Message: "must be a whole number from 0 (keep for ever) to 36500"}
	}
	return nil
}

// Fields returns what the audit log shows of a retention.
func (r Retention) Fields() Fields { return Fields{"days": strconv.Itoa(r.Days)} }
