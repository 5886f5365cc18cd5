package compactionbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/tokens"
)

// Row is the result of one policy on one session.
type Row struct {
	Session string `json:"session"`
	Window  int    `json:"window"`
	Prices  string `json:"prices"`
	Pace    string `json:"pace"`
	Policy  string `json:"policy"`

	Bill

	Failures int  `json:"failures,omitempty"` // in a vast window: refused or too long prompts
	IsLong   bool `json:"is_long,omitempty"`  // the session is a long one

	Invalid int     `json:"invalid"` // bodies that the provider refuses
	Epochs  int     `json:"epochs"`  // steps that change the form of old turns
	None    float64 `json:"none"`    // cost against no compression, in percent
	Self    float64 `json:"self"`    // cost against a client that compacts itself
	Worst   float64 `json:"worst"`   // cost against no compression if the session ends at the worst moment

	Directives Share `json:"directives"` // in the last prompt
	Modified   Share `json:"modified"`

	// The following are known only for our policy.

	Cold         int                 `json:"cold_epochs"` // epochs that found the provider's cache cold
	Faults       []string            `json:"faults,omitempty"`
	Lost         []string            `json:"lost,omitempty"`  // directives and modified files
	Directives30 Share               `json:"directives_30"`   // after 30 epochs
	Modified30   Share               `json:"modified_30"`     //
	Untouched    Share               `json:"untouched"`       // prompts without a replacement
	Intact       Share               `json:"newest_intact"`   // prompts with their newest message unchanged
	Originals    Share               `json:"originals"`       // archived messages that come back with an equal SHA-256
	Recall       pipelinetest.Recall `json:"recall"`          //
	P50          time.Duration       `json:"p50_ns"`          // of our own work on a request
	P99          time.Duration       `json:"p99_ns"`          //
	After        []int               `json:"after,omitempty"` // tokens of the prompt after each epoch
	Levels       [4]int              `json:"levels"`          // turns at L0 to L3 in the last prompt
}

// Failing returns how many requests the provider refuses: too long prompts or, for our policy, illegal
// ones.
func (r *Row) Failing() int {
	if r.Policy == Ours {
		return r.Invalid
	}
	return r.TooLong
}

// Bench compares policies.
type Bench struct {
	// Pipeline configures our policy. New sets the defaults of only the module that compresses,
	// because the other modules add text, unlike the other policies.
	Pipeline pipeline.Config

	counter *tokens.Counter
}

// New returns a Bench.
func New() (*Bench, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, fmt.Errorf("token counter: %w", err)
	}
	config := modules.Catalog().Default()
	config.Modules = []string{ipc.Name}
	return &Bench{Pipeline: config, counter: counter}, nil
}

// All returns the names of the modeled policies.
func All() []string { return []string{NoCompression, Stateless, Masking, SelfCompacting} }

// Compare runs policies on a session and Ours after them, and returns a row for each. It compares costs
// with those of NoCompression and SelfCompacting, if they are among the policies.
func (b *Bench) Compare(ctx context.Context, talk *Talk, prices Prices, pace Pace, policies ...string) ([]Row, error) {
	r, err := read(talk, b.counter)
	if err != nil {
		return nil, err
	}
	if len(r.ends) == 0 {
		return nil, errors.New(talk.Name + ": holds no request")
	}
	rows := make([]Row, 0, len(policies)+1)
	for _, name := range policies {
		rows = append(rows, modelled(r, name, prices, pace))
	}
	ours, err := proxy(ctx, r, b.Pipeline, prices, pace)
	if err != nil {
		return nil, err
	}
	rows = append(rows, ours.row(r))
	bills := map[string]Bill{}
	for i := range rows {
		bills[rows[i].Policy] = rows[i].Bill
	}
	for i := range rows {
		row := &rows[i]
		row.Session, row.Window, row.Prices, row.Pace = talk.Name, talk.Window, prices.Name, pace.Name
		row.None, row.Self = row.against(bills[NoCompression]), row.against(bills[SelfCompacting])
	}
	return rows, nil
}

// modelled returns the row of a modeled policy.
func modelled(r *reading, name string, prices Prices, pace Pace) Row {
	if name == SelfCompacting || name == SelfAt150k {
		self := &selfCompacting{reading: r}
		if name == SelfAt150k {
			self.most = selfTokens
		}
		bill, _ := charge(r, self, prices, pace)
		bill.Busts = self.compactions                                  // because its request for a summary omits the newest turn
		return Row{Policy: name, Bill: bill, Epochs: self.compactions} // the content of its summaries is unknown
	}
	var chosen policy = untouched{r}
	switch name {
	case Stateless:
		chosen = newStateless(r)
	case Masking:
		chosen = newMasking(r)
	case ContextEditing:
		chosen = &contextEditing{masking: *newMasking(r)}
	}
	bill, last := charge(r, chosen, prices, pace)
	var prompt []byte
	for _, form := range last {
		prompt = append(prompt, form.text...)
	}
	survived := r.survives(prompt, len(r.messages))
	return Row{Policy: name, Bill: bill, Epochs: bill.Busts, Directives: survived.directives, Modified: survived.modified}
}

// row returns our row.
func (p *proxied) row(r *reading) Row {
	survived := r.survives(p.last, len(r.messages))
	return Row{
		Policy: Ours, Bill: p.bill, Invalid: p.invalid, Epochs: p.epochs, Cold: p.cold, Faults: p.faults,
		Directives: survived.directives, Modified: survived.modified, Lost: survived.lost,
		Directives30: p.watched.directives, Modified30: p.watched.modified,
		Untouched: p.untouched, Intact: p.intact, Originals: p.originals, Recall: p.recall,
		P50: p.percentile(50), P99: p.percentile(99), After: p.after, Levels: p.levels,
	}
}
