package sessiontest

import (
	"fmt"
	"strings"
)

// How often facts come up, in percent of turns, and after how many turns they are
// come back to.
const (
	factChance   = 35
	soonestUse   = 3
	spreadOfUses = 60
	usesOfFact   = 3
)

// remember has an exchange come back to facts that are due, and plants a new one
// now and then.
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

// fact is an identifier that no other one repeats: a path, a symbol, a number or
// the text of an error.
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

// plantFact puts a fact where agents meet them: most of the time in a result, at
// its end or in its middle, else in what is said or typed.
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

// useFact has an exchange come back to a fact, in a call where it makes any, else
// in what is said.
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
