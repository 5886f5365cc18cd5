package session

// Sums are the totals of all exchanges of a session. This is the only description of each number, see
// sums.Sum.
type Sums struct {
	Exchanges    int   `csv:"requests"        gorm:"column:exchanges"     help:"Requests of the session"                                                        json:"requests"`
	Epochs       int   `csv:"epochs"          gorm:"column:epochs"        help:"Requests that compressed their prompt further"                                  json:"epochs"`
	TokensBefore int64 `csv:"tokens_received" gorm:"column:tokens_before" help:"Estimate of the prompts as the client sent them, in tokens"                     json:"tokens_before"`
	TokensAfter  int64 `csv:"tokens_sent"     gorm:"column:tokens_after"  help:"Estimate of the prompts as they were sent on, in tokens"                        json:"tokens_after"`
	NetMicroUSD  int64 `csv:"net_micro_usd"   gorm:"column:net_microusd"  help:"Money saved against the cheaper of the prompt as sent and a client that compacts itself, net of cache rewrites; can be negative; 0 for prompts that could not have been sent" json:"net_micro_usd"`

	// Answered requests whose original prompt was too long to send.
	Reach       int64 `csv:"reach"                 gorm:"column:reach"        help:"Requests kept alive: the provider would have refused their prompt for its length, and answered because it was shortened. No money and no tokens are claimed as saved for them" json:"reach"`
	ReachBefore int64 `csv:"reach_tokens_received" gorm:"column:reach_before" help:"The part of tokens_before of requests kept alive" json:"reach_tokens_before"`
	ReachAfter  int64 `csv:"reach_tokens_sent"     gorm:"column:reach_after"  help:"The part of tokens_after of requests kept alive"  json:"reach_tokens_after"`

	CostMicroUSD int64 `csv:"cost_micro_usd" gorm:"column:cost_microusd" help:"Paid, with summaries of the session" json:"cost_micro_usd"`
}

// Saved returns how many tokens were saved on prompts that could have been sent unchanged. It is negative if
// more were sent than received.
func (s *Sums) Saved() int64 { return s.Sendable() - (s.TokensAfter - s.ReachAfter) }

// Sendable returns the tokens of the prompts that could have been sent unchanged: the base of Saved.
func (s *Sums) Sendable() int64 { return s.TokensBefore - s.ReachBefore }

// Increment is an exchange's addition to the counts of its session.
type Increment struct {
	Exchanges    int
	TokensBefore int // estimate of the prompt as the client sent it
	TokensAfter  int // estimate of the prompt as sent
	NetMicroUSD  int64
	CostMicroUSD int64
	Reach        bool // the client's prompt was too long to be sent, and ours was answered
	Continued    bool // the request carries a model's answer

	// Redacted counts the replaced pieces of personal data in the entries by kind; nil without any.
	Redacted map[string]int `json:",omitempty"`
}

// Sums returns the exchange's addition to its session's sums. A compaction is counted when it is stored.
func (i *Increment) Sums() Sums {
	sums := Sums{Exchanges: i.Exchanges, TokensBefore: int64(i.TokensBefore), TokensAfter: int64(i.TokensAfter), NetMicroUSD: i.NetMicroUSD, CostMicroUSD: i.CostMicroUSD}
	if i.Reach {
		sums.Reach, sums.ReachBefore, sums.ReachAfter = 1, sums.TokensBefore, sums.TokensAfter
	}
	return sums
}
