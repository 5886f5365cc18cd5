package sessiontest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// plan is a session independent of a format: typed texts, answers, calls and results.
type plan struct {
	exchanges  []exchange
	directives []string
	modified   []string
	read       []string
	facts      []string
	system     string
}

// exchange is the new content of one request and its answer. The new content is typed, or consists of the
// results of the exchange before.
type exchange struct {
	typed    string // "" if the previous calls continue
	reminder string
	picture  string // PNG in base64

	thinking string
	redacted bool // the thinking is hidden
	text     string
	calls    []toolCall

	lot uint64 // random seed for a varied session's further content; 0 if not varied
}

// toolCall is a call and its result.
type toolCall struct {
	name, input string // input is JSON
	result      string
	failed      bool
	picture     string // in the result
	reminder    string // after the result
}

// planner makes a plan.
type planner struct {
	writer

	options Options
	files   []string
	plan    *plan
	base    int // bytes of an ordinary result
	huge    int // bytes that huge results may still take
	left    int // answers until the user types again
	topics  int
	later   map[int][]string // facts by the turns that use them again
}

const (
	bytesPerToken = 3.9 // of this package's texts, approximately
	ordinary      = 1500
	unlimited     = 1 << 40
	headBytes     = 9000 // system prompt and tools, approximately
)

func newPlan(seed uint64, options Options) *plan {
	if options.TargetTokens == 0 {
		return planned(seed, options, ordinary, unlimited)
	}
	// A first run with ordinary sizes measures the session. The second draws the same session, but scales its
	// results.
	huge := options.TargetTokens * 2 / 5 * 4
	weighed := planned(seed, options, ordinary, huge)
	return planned(seed, options, max(40, int(ordinary*weighed.scale(options.TargetTokens))), huge)
}

// planned makes a plan whose ordinary results have about base bytes, and whose huge ones have at most huge
// bytes together.
func planned(seed uint64, options Options, base, huge int) *plan {
	p := &planner{
		writer:  writer{random: drawing(seed, 0), cjk: options.CJK},
		options: options, base: base, huge: huge, plan: &plan{},
	}
	for i := range 12 + options.Turns/10 {
		p.files = append(p.files, fmt.Sprintf("internal/%s/%s_%d.go", p.noun(), p.noun(), i))
	}
	p.plan.system = p.systemPrompt()
	for turn := range options.Turns {
		p.exchange(turn)
	}
	return p.plan
}

// drawing returns a source of random numbers that depends only on seed and stream.
func drawing(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // the same seed must give the same session
}

// scale returns the factor on the size of results that makes the session reach a size.
func (p *plan) scale(tokens int) float64 {
	results, rest := 0, headBytes+len(p.system)
	for _, e := range p.exchanges {
		rest += len(e.typed) + len(e.reminder) + len(e.thinking) + len(e.text) + 120
		for _, call := range e.calls {
			rest += len(call.input) + len(call.reminder) + 250
			if len(call.result) > 40*ordinary {
				rest += len(call.result)
				continue
			}
			results += len(call.result)
		}
	}
	return (float64(tokens)*bytesPerToken - float64(rest)) / float64(max(results, 1))
}

// exchange plans one request and its answer.
func (p *planner) exchange(turn int) {
	e := exchange{}
	if p.left == 0 {
		p.typing(&e)
		p.left = 2 + p.random.IntN(9)
	}
	p.left--
	opens := e.typed != ""
	if p.options.Thinking && (opens || p.chance(60)) {
		e.thinking = p.prose(80 + p.random.IntN(500))
		e.redacted = p.chance(6)
	}
	last := turn == p.options.Turns-1
	if p.left > 0 && !last {
		p.call(&e)
	}
	if len(e.calls) == 0 || p.chance(45) {
		e.text = p.prose(60 + p.random.IntN(300))
	}
	if p.options.Facts && !last {
		p.remember(turn, &e)
	}
	if p.options.Varied {
		e.lot = p.random.Uint64() | 1
	}
	p.plan.exchanges = append(p.plan.exchanges, e)
}

// typing makes the user type something.
func (p *planner) typing(e *exchange) {
	p.topics++
	e.typed = fmt.Sprintf("Step %d: please %s the %s in %s. %s", p.topics, p.verb(), p.noun(), p.files[p.random.IntN(len(p.files))], p.sentence())
	if p.chance(35) {
		order := p.directive()
		p.plan.directives = append(p.plan.directives, order)
		e.typed += "\n" + order
	}
	if p.options.Reminders && (p.topics == 1 || p.chance(50)) {
		e.reminder = fmt.Sprintf("<system-reminder>\nThe todo list has %d open entries. %s\n</system-reminder>", p.random.IntN(9), p.sentence())
	}
	if p.options.Images && p.chance(25) {
		e.picture = p.picture()
	}
}

// directive is a unique standing instruction.
func (p *planner) directive() string {
	n := len(p.plan.directives) + 1
	switch p.random.IntN(3) {
	case 0:
		return fmt.Sprintf("Always run the %s tests before you touch %s again (rule %d).", p.noun(), p.files[p.random.IntN(len(p.files))], n)
	case 1:
		return fmt.Sprintf("Never %s a %s without asking me first (rule %d).", p.verb(), p.noun(), n)
	default:
		return fmt.Sprintf("From now on you must name every new %s after its %s, never after its %s (rule %d).", p.noun(), p.noun(), p.noun(), n)
	}
}

// call plans the calls of one answer.
func (p *planner) call(e *exchange) {
	calls := 1
	if p.options.Parallel && p.chance(40) {
		calls = 2 + p.random.IntN(3)
	}
	for range calls {
		e.calls = append(e.calls, p.toolCall())
	}
	if p.options.Reminders && p.chance(15) {
		e.calls[len(e.calls)-1].reminder = "<system-reminder>\nThe file was changed outside of this session. " + p.sentence() + "\n</system-reminder>"
	}
}

// apart returns a writer whose draws do not change the planner's own, however much it writes.
func (p *planner) apart() *writer {
	return &writer{random: drawing(p.random.Uint64(), 1), cjk: p.cjk}
}

// weight is the size of one result.
func (p *planner) weight() int {
	if p.options.HugeResults && p.chance(3) {
		if size := 80_000 + p.random.IntN(80_000); size <= p.huge {
			p.huge -= size
			return size
		}
	}
	return p.base * []int{1, 1, 2, 4, 8, 16, 24}[p.random.IntN(7)] / 8
}

func (p *planner) toolCall() toolCall {
	file := p.files[p.random.IntN(len(p.files))]
	size := p.weight()
	fails := p.options.ToolErrors && p.chance(15)
	switch p.random.IntN(10) {
	case 0, 1, 2, 3:
		return p.readCall(file, size, fails)
	case 4, 5:
		return p.editCall(file, fails)
	case 6, 7, 8:
		return p.bashCall(size, fails)
	default:
		pattern := p.name()
		return toolCall{name: "Grep", input: fmt.Sprintf(`{"pattern":%s,"path":"internal","output_mode":"content","-n":true}`, quote(pattern)), result: p.apart().grep(size, pattern, p.files)}
	}
}

func (p *planner) readCall(file string, size int, fails bool) toolCall {
	call := toolCall{name: "Read", input: fmt.Sprintf(`{"file_path":%s}`, quote(file))}
	if p.options.Images && p.chance(12) {
		call.input, call.picture = `{"file_path":"docs/screenshot.png"}`, p.picture()
		return call
	}
	if fails {
		call.failed, call.result = true, "<tool_use_error>File does not exist: "+file+"</tool_use_error>"
		return call
	}
	if p.chance(20) {
		// A number and spaces as another encoder would write them.
		call.input = fmt.Sprintf(`{ "file_path": %s, "offset": %d.0, "limit": 2e3 }`, quote(file), 1+p.random.IntN(300))
	}
	call.result = numbered(p.apart().code(strings.Split(file, "/")[1], size))
	p.plan.read = appendNew(p.plan.read, file)
	return call
}

func (p *planner) editCall(file string, fails bool) toolCall {
	before, after := p.code("x", 120), p.code("x", 160+p.random.IntN(400))
	call := toolCall{name: "Edit", input: fmt.Sprintf(`{"file_path":%s,"old_string":%s,"new_string":%s}`, quote(file), quote(before), quote(after))}
	if fails {
		call.failed, call.result = true, "<tool_use_error>String to replace not found in file.</tool_use_error>"
		return call
	}
	call.result = "The file " + file + " has been updated successfully."
	p.plan.modified = appendNew(p.plan.modified, file)
	return call
}

func (p *planner) bashCall(size int, fails bool) toolCall {
	command := "go test ./internal/" + p.noun() + "/... -run " + p.name()
	return toolCall{
		name:   "Bash",
		input:  fmt.Sprintf(`{"command":%s,"description":"Run the tests","timeout":120000}`, quote(command)),
		result: p.apart().testRun(size, fails || p.chance(40)), failed: fails,
	}
}

func (p *planner) systemPrompt() string {
	var text strings.Builder
	text.WriteString("You are a coding agent that works in the repository of its user.\n\n# How you work\n")
	for range 24 {
		text.WriteString("- " + p.sentence() + "\n")
	}
	for more := p.options.HeadTokens*39/10 - headBytes; text.Len() < more; {
		text.WriteString("- " + p.sentence() + "\n")
	}
	return text.String()
}

func appendNew(list []string, element string) []string {
	if slices.Contains(list, element) {
		return list
	}
	return append(list, element)
}
