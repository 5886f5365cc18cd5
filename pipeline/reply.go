package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reply is a module's answer to an exchange in the provider's place.
type Reply struct {
	ID   string    // equal for equal exchanges
	Text string    // what the assistant says
	At   time.Time // when its source became ready; zero if unknown
}

// Replier is a module that may answer an exchange in the provider's place.
type Replier interface {
	Module

	// Answer returns a draft with the module's Reply, or without one if the provider should answer. The chain
	// uses only the Reply and the report's events of the draft.
	Answer(ctx context.Context, exchange *View) (*Draft, error)
}

// AnsweredCompaction is the value of Report.Answered if a client's request for a summary was answered from
// Palimpsest's compaction.
const AnsweredCompaction = "compaction"

// answer asks the config's modules in order for an answer to the exchange, and reports whether one gave it.
// If a module fails, its draft is dropped and the provider is asked.
func (c *Chain) answer(ctx context.Context, exchange *Exchange, view *View) bool {
	for _, name := range exchange.Config.Modules {
		at := slices.IndexFunc(c.modules, func(module Module) bool { return module.Name() == name })
		if at < 0 {
			continue
		}
		replier, answers := c.modules[at].(Replier)
		if !answers {
			continue
		}
		draft, err := c.run(ctx, exchange, view, replier, replier.Answer)
		if err != nil {
			exchange.Report.Events = append(exchange.Report.Events, ReportEntry{
				Module: name, Type: "failed", Reason: fmt.Sprintf("answer in the provider's place: %v", err), FellBackTo: "provider",
			})
			continue
		}
		if draft == nil {
			continue
		}
		exchange.Report.Events = draft.Report.Events
		if draft.Reply != nil {
			exchange.settleReply(name, draft.Reply)
			return true
		}
	}
	return false
}

// settleReply makes the exchange answered by a module. Its report counts no savings, because no prompt is
// sent.
func (e *Exchange) settleReply(module string, reply *Reply) {
	events := e.Report.Events
	e.Reply, e.Lane.Projection = reply, nil
	e.Report = e.Standing()
	e.Report.After = e.Report.Before
	e.Report.Answered, e.Report.Events = AnsweredCompaction, events
	e.Report.Modules = []ModuleReport{{Name: module, Outcome: Applied}}
}

// Header is an answer header with a report of the proxy. Its name omits the prefix X-Palimpsest-.
type Header struct{ Name, Value string }

// Headers returns the headers for a report; nil for an empty one. named means that the request names a model;
// otherwise there is no window to report.
func (c *Catalog) Headers(r Report, named bool) []Header {
	if r.Compression == "" {
		return nil
	}
	headers := append(make([]Header, 0, 12),
		Header{"Modules", outcomeList(r.Modules)},
		Header{"Compression", string(r.Compression)},
		Header{"Tokens-Before", strconv.Itoa(r.Before)},
		Header{"Tokens-After", strconv.Itoa(r.After)},
		Header{"Tokens-Saved", strconv.Itoa(r.Before - r.After)},
		Header{"Levels", LevelList(r.Levels)},
		Header{"Archived", strconv.Itoa(r.Archived)},
	)
	if len(r.Injected) > 0 {
		headers = append(headers, Header{"Injected", c.injected(r.Injected)})
	}
	headers = append(headers, Header{"Cache", string(cmp.Or(r.Cache, CacheOff))})
	if r.Answered != "" {
		headers = append(headers, Header{"Answered-From", r.Answered})
	}
	if len(r.Warnings) > 0 {
		headers = append(headers, Header{"Warning", strings.Join(r.Warnings, "; ")})
	}
	switch {
	case r.Limit == 0 && named:
		headers = append(headers, Header{"Context-Window", "unknown"})
	case r.Limit > 0:
		headers = append(headers, Header{"Context-Window", strconv.Itoa(r.Limit)},
			Header{"Utilization", fmt.Sprintf("%.2f;after=%.2f", ratio(r.Before, r.Limit), ratio(r.After, r.Limit))})
	}
	return headers
}

// LevelList formats how many turns are at each level.
func LevelList(levels [4]int) string {
	return fmt.Sprintf("L0=%d,L1=%d,L2=%d,L3=%d", levels[0], levels[1], levels[2], levels[3])
}

func outcomeList(modules []ModuleReport) string {
	parts := make([]string, 0, len(modules))
	for _, module := range modules {
		parts = append(parts, module.Name+";"+module.Outcome)
	}
	return strings.Join(parts, ", ")
}

// injected formats how many items each module put into the prompt: first the modules with a header name, in
// the order in which they usually run, then the others by name.
func (c *Catalog) injected(items map[string]int) string {
	var known []string
	for i := range c.modules {
		if c.modules[i].Header != "" {
			known = append(known, c.modules[i].Name)
		}
	}
	names := slices.SortedFunc(maps.Keys(items), func(a, b string) int {
		at, bt := slices.Index(known, a), slices.Index(known, b)
		if at < 0 || bt < 0 {
			return cmp.Or(cmp.Compare(bt, at), strings.Compare(a, b))
		}
		return cmp.Compare(at, bt)
	})
	list := make([]string, len(names))
	for i, name := range names {
		module, _ := c.Module(name)
		list[i] = fmt.Sprintf("%s=%d", cmp.Or(module.Header, name), items[name])
	}
	return strings.Join(list, ",")
}

func ratio(part, whole int) float64 { return float64(part) / float64(whole) }
