package sessiontest

import (
	"fmt"
	"strings"
)

// How often facts occur, in percent of turns, and after how many turns they are used again.
const (
	factChance   = 35
	soonestUse   = 3
	spreadOfUses = 60
	usesOfFact   = 3
)

// remember makes an exchange use due facts, and occasionally plants a new one.
func (p *planner) remember(turn int, e *exchange) {
	for _, fact := range p.later[turn] {
		p.useFact(e, fact)
	}
	delete(p.later, turn)
	if !p.chance(factChance) {
		return
	}
	fact := p.fact()
	p.plan.facts = append(p.plan.facts, fact)
	p.plantFact(e, fact)
	if p.later == nil {
		p.later = map[int][]string{}
	}
	for range usesOfFact {
		due := turn + soonestUse + p.random.IntN(spreadOfUses)
		p.later[due] = append(p.later[due], fact)
	}
}

// fact is a unique identifier: a path, a symbol, a number or the text of an error.
func (p *planner) fact() string {
	serial := 10_000 + 37*len(p.plan.facts)
	switch p.random.IntN(4) {
	case 0:
		return fmt.Sprintf("internal/%s/%s_%d.go:%d", p.noun(), p.verb(), serial, 10+p.random.IntN(90))
	case 1:
		return fmt.Sprintf("%s%d", p.name(), serial)
	case 2:
		return fmt.Sprintf("0x%x%04x", serial, p.random.IntN(65536))
	default:
		return fmt.Sprintf("%s of %s %d not permitted", p.verb(), p.noun(), serial)
	}
}

// plantFact puts a fact in a typical place: usually in a result, at its end or in its middle, otherwise in
// the model's or the user's text.
func (p *planner) plantFact(e *exchange, fact string) {
	where := p.random.IntN(10)
	switch {
	case where < 4 && len(e.calls) > 0 && e.calls[len(e.calls)-1].picture == "":
		call := &e.calls[len(e.calls)-1]
		call.result += "\nerror: " + fact
	case where < 6 && len(e.calls) > 0 && e.calls[0].picture == "":
		call := &e.calls[0]
		half := len(call.result) / 2
		line := strings.IndexByte(call.result[half:], '\n') + 1
		call.result = call.result[:half+line] + "// " + fact + "\n" + call.result[half+line:]
	case where < 8 && e.typed != "":
		e.typed += " It has to do with " + fact + "."
	default:
		e.text = strings.TrimSpace(e.text + " The cause is " + fact + ", as the output shows.")
	}
}

// useFact makes an exchange use a fact: in a call if it has any, otherwise in the text.
func (p *planner) useFact(e *exchange, fact string) {
	if len(e.calls) > 0 && p.chance(60) {
		e.calls = append(e.calls, toolCall{
			name: "Grep", input: fmt.Sprintf(`{"pattern":%s,"path":"internal","output_mode":"files_with_matches"}`, quote(fact)),
			result: "Found 1 file\n" + p.files[p.random.IntN(len(p.files))],
		})
		return
	}
	e.text = strings.TrimSpace(e.text + " Next I look at " + fact + " again.")
}
