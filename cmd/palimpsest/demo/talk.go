package demo

import (
	"fmt"
	"strings"
	"time"
)

// step is one request and its answer.
type step struct {
	typed string // a person's text; empty: the results of the step before
	pause time.Duration
	says  string
	calls []call
}

// outline is the plan of a talk.
type outline struct {
	task     task
	steps    int
	results  int    // bytes of an ordinary result
	order    string // a standing order, typed with the task; optional
	patience int    // steps until the person's next message; 0: about nine
}

// plan writes the steps of a talk.
func plan(seed, stream uint64, of outline) []step {
	w := newWriter(seed, stream, areas()[of.task.area])
	opening := of.task.prompt
	if of.order != "" {
		opening += " " + of.order
	}
	steps := []step{}
	typed, pause, left := opening, time.Duration(0), w.patience(of.patience)
	for len(steps) < of.steps {
		arc := w.turns(of.results)
		if left <= 0 || len(steps)+len(arc) >= of.steps {
			arc = []step{{says: w.report()}}
		}
		arc[0].typed, arc[0].pause = typed, pause
		for i := range arc {
			if arc[i].pause == 0 {
				arc[i].pause = time.Duration(w.between(300, 9000)) * time.Millisecond
			}
		}
		steps, left = append(steps, arc...), left-len(arc)
		typed, pause = "", 0
		if len(arc) == 1 && len(arc[0].calls) == 0 {
			typed = strings.NewReplacer("{folder}", w.area.folder, "{noun}", w.noun(), "{done}", past(w.verb())).Replace(w.pick(followUps()))
			pause, left = time.Duration(w.between(20, 240))*time.Second, w.patience(of.patience)
		}
	}
	return steps[:of.steps]
}

// patience is the number of steps until a person's next message.
func (w *writer) patience(about int) int {
	if about == 0 {
		about = 9
	}
	return w.between(max(1, about/2), about*3/2)
}

// turns are the model's next turns: one call, or the steps from an error to its cause.
func (w *writer) turns(size int) []step {
	file, symbol := w.file(), w.symbol()
	size = size*w.between(40, 160)/100 + 1
	run := call{name: "Bash", input: map[string]string{"command": "go test ./" + w.area.folder + "/..."}}
	switch lot := w.random.IntN(100); {
	case lot < 40:
		return []step{{
			says:  fmt.Sprintf("I read %s, where %s is.", file, symbol),
			calls: []call{{name: "Read", input: map[string]string{"file_path": "/src/northbeam/" + file}, result: w.code(size)}},
		}}
	case lot < 50: // two files at once
		other := w.file()
		return []step{{
			says: "Both sides of it in one go.",
			calls: []call{
				{name: "Read", input: map[string]string{"file_path": "/src/northbeam/" + file}, result: w.code(size / 2)},
				{name: "Read", input: map[string]string{"file_path": "/src/northbeam/" + other}, result: w.code(size / 2)},
			},
		}}
	case lot < 64:
		return []step{{
			says:  fmt.Sprintf("Who else calls %s?", symbol),
			calls: []call{{name: "Grep", input: map[string]string{"pattern": symbol, "path": w.area.folder}, result: w.found(size/2, symbol)}},
		}}
	case lot < 80:
		return []step{{
			says:  fmt.Sprintf("%s has to know of the %s before it %ss.", title(symbol), w.noun(), w.verb()),
			calls: []call{w.edit(file, symbol)},
		}}
	case lot < 97:
		run.result = w.tested(size/2, "")
		return []step{{says: "The tests of the package, to be sure.", calls: []call{run}}}
	default:
		return w.mended(file, symbol, size, run)
	}
}

// mended is the steps from an error to its cause.
func (w *writer) mended(file, symbol string, size int, run call) []step {
	kinds := troubles()
	kind := kinds[w.random.IntN(len(kinds))]
	fill := strings.NewReplacer("{symbol}", symbol, "{Symbol}", title(symbol), "{noun}", w.noun(), "{done}", past(w.verb()), "{other}", w.symbol()).Replace
	failing, passing := run, run
	failing.failed = true
	failing.result = w.tested(size/3, fmt.Sprintf("%s:%d: %s", file[strings.LastIndexByte(file, '/')+1:], w.between(20, 300), fill(kind.prints)))
	passing.result = w.tested(size/3, "")
	return []step{
		{says: "The tests first, as they are.", calls: []call{failing}},
		{says: fill(kind.seen), calls: []call{w.edit(file, symbol)}},
		{says: "Once more.", calls: []call{passing}},
		{says: fill(kind.learned)},
	}
}

func (w *writer) edit(file, symbol string) call {
	noun := w.noun()
	return call{
		name: "Edit",
		input: map[string]string{
			"file_path":  "/src/northbeam/" + file,
			"old_string": fmt.Sprintf("\t%s, err := s.%s(ctx, %s.ID)\n", noun, symbol, noun),
			"new_string": fmt.Sprintf("\t%[1]s, err := s.%[2]s(ctx, %[1]s.ID, s.locks.For(%[1]s.ID))\n\tif errors.Is(err, ErrLocked) {\n\t\treturn nil, err\n\t}\n", noun, symbol),
		},
		result: "The file /src/northbeam/" + file + " has been updated.",
	}
}

// report is the model's message after a finished step.
func (w *writer) report() string {
	switch w.random.IntN(3) {
	case 0:
		return fmt.Sprintf("Done. %s keeps the %s until the %s is stored, and the tests of %s pass.", title(w.symbol()), w.noun(), w.noun(), w.area.folder)
	case 1:
		return fmt.Sprintf("I decided to leave %s as it is and to check the %s in %s: it is the one place that all callers pass. Nothing else reads the %s there.", w.symbol(), w.noun(), w.symbol(), w.noun())
	default:
		return fmt.Sprintf("There are two ways: lock the %[1]s in %[2]s, or make %[3]s safe to run twice. The first is three lines; the second can be taken back one step at a time.", w.noun(), w.symbol(), w.symbol())
	}
}
