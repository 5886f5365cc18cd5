package api

import (
	"sync/atomic"

	"palimpsest/api/limits"
	"palimpsest/api/spool"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
)

// money holds a request's usage, cost and savings.
type money struct {
	Usage        wire.Usage
	CostMicroUSD int64
	NetMicroUSD  int64

	firstMicroUSD int64 // cost of earlier attempts: answers that ended at the model's window, and unanswered keys

	// The parts of NetMicroUSD other than unsent input.
	UnreadMicroUSD, RewrittenMicroUSD int64
	Reach                             bool // the client's prompt was too long for the model, and ours was answered

	served wire.Served // terms of the answer, such as the service tier

	Miss cost.Miss // tokens missing from the provider's cache although expected there
}

// used sets the request's usage.
func (m *money) used(usage wire.Usage) { m.Usage = usage }

// estimated sets the request's estimated usage and cost.
func (m *money) estimated(usage wire.Usage, microUSD int64) {
	m.Usage, m.CostMicroUSD = usage, microUSD+m.firstMicroUSD
}

// first adds the cost of an attempt before another one.
func (m *money) first(microUSD int64) { m.firstMicroUSD += microUSD }

// unanswered counts the cost of attempts if all of them stayed unanswered.
func (m *money) unanswered() {
	if m.CostMicroUSD == 0 {
		m.CostMicroUSD = m.firstMicroUSD
	}
}

// settled sets the cost and the savings of the answer, and its terms.
func (m *money) settled(counted cost.Money, served wire.Served) {
	m.served = served
	m.CostMicroUSD, m.NetMicroUSD, m.Miss = counted.Cost+m.firstMicroUSD, counted.Net-m.firstMicroUSD, counted.Miss
	m.UnreadMicroUSD, m.RewrittenMicroUSD, m.Reach = counted.Unread, counted.Rewritten, counted.Reach
}

// held holds a request's share of limits while it is under way.
type held struct {
	ticket *limits.Ticket // the request's share of limits; nil without limits
	most   prompt.Most    // its largest possible usage; zero if it is free of charge
	noted  spool.Record   // its cost if the process is killed

	// owes says that the provider may charge for the request, and that the amount is still unknown.
	owes atomic.Bool
}
