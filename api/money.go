package api

import (
	"sync/atomic"

	"palimpsest/api/limits"
	"palimpsest/api/spool"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
)

// money is what a request used, cost and saved.
type money struct {
	Usage        wire.Usage
	CostMicroUSD int64
	NetMicroUSD  int64

	firstMicroUSD int64 // the part of the cost that earlier attempts had: answers that ended at the model's window, keys that did not answer

	// The parts of NetMicroUSD beside input not sent.
	UnreadMicroUSD, RewrittenMicroUSD int64
	Reach                             bool // the client's prompt was too long to be sent, and ours was answered

	served wire.Served // on what terms it was answered

	Miss cost.Miss // what the provider's cache did not have although it should
}

// used notes what the request used.
func (m *money) used(usage wire.Usage) { m.Usage = usage }

// estimated notes what the request may have used and cost.
func (m *money) estimated(usage wire.Usage, microUSD int64) {
	m.Usage, m.CostMicroUSD = usage, microUSD+m.firstMicroUSD
}

// first notes the cost of an attempt that another one follows.
func (m *money) first(microUSD int64) { m.firstMicroUSD += microUSD }

// unanswered counts what attempts cost of which none was answered.
func (m *money) unanswered() {
	if m.CostMicroUSD == 0 {
		m.CostMicroUSD = m.firstMicroUSD
	}
}

// settled notes what the answer cost and saved, and on what terms it was given.
func (m *money) settled(counted cost.Money, served wire.Served) {
	m.served = served
	m.CostMicroUSD, m.NetMicroUSD, m.Miss = counted.Cost+m.firstMicroUSD, counted.Net-m.firstMicroUSD, counted.Miss
	m.UnreadMicroUSD, m.RewrittenMicroUSD, m.Reach = counted.Unread, counted.Rewritten, counted.Reach
}

// held is what is held of limits while a request is under way.
type held struct {
	ticket *limits.Ticket // what is counted of the request; nil if nothing
	most   prompt.Most    // what it may come to; zero if it is not to be charged for
	noted  spool.Record   // what it counts as if the process is killed

	// owes says that the provider may charge for the request, and that nobody has read yet
	// for how much.
	owes atomic.Bool
}
