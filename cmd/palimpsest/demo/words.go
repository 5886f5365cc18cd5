package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// area is a part of the team's repository.
type area struct {
	folder string
	nouns  []string
	verbs  []string
}

func areas() []area {
	return []area{
		{"internal/checkout", []string{"cart", "order", "coupon", "payment", "address", "receipt"}, []string{"reserve", "price", "confirm", "refund", "split", "merge"}},
		{"internal/stock", []string{"shelf", "batch", "item", "warehouse", "pallet", "count"}, []string{"allocate", "release", "move", "recount", "order", "receive"}},
		{"internal/suppliers", []string{"feed", "price", "catalogue", "currency", "tariff", "supplier"}, []string{"import", "parse", "match", "convert", "validate", "store"}},
		{"internal/search", []string{"index", "query", "term", "facet", "synonym", "ranking"}, []string{"build", "refresh", "score", "filter", "explain", "cut"}},
		{"internal/mailer", []string{"letter", "template", "recipient", "bounce", "queue", "attachment"}, []string{"render", "send", "retry", "defer", "drop", "track"}},
		{"web/src/shop", []string{"basket", "product", "gallery", "filter", "session", "form"}, []string{"show", "hide", "load", "submit", "restore", "sort"}},
	}
}

// task is a person's request at the start of a session.
type task struct {
	area   int
	prompt string
}

func tasks() []task {
	return []task{
		{2, "The nightly import of supplier prices fails since Tuesday with a duplicate key. Find out why and mend it."},
		{0, "Checkout charges twice when someone presses the button while the first request is still running. Make it idempotent."},
		{1, "Recounting a warehouse takes four minutes. Find what is slow and make it take seconds."},
		{3, "Search for “rain jacket” finds tents first. Look at how ranking weighs the category."},
		{4, "Bounced letters are tried again for ever. Stop after five times and tell the sender."},
		{5, "The filter on the product list forgets what was chosen when one goes back. Keep it in the address."},
		{0, "Add gift cards to checkout: several for one order, and what is left stays on the card."},
		{2, "Supplier feeds come with prices in three currencies now. Convert them when they are stored, with the day's rate."},
		{1, "Move the stock tables to the new schema without downtime, in steps that can be taken back."},
		{3, "Write the synonyms of the search in a file that the shop's people can edit, and load it without a restart."},
		{4, "Render the order letters from the same templates as the web page, so that they stop to drift apart."},
		{5, "The gallery loads every picture at full size. Serve the sizes that are shown, and measure what that saves."},
		{0, "Refunds of split orders round each part on its own and lose cents. Mend that and write the test first."},
		{1, "Two people can allocate the last item at once. Reproduce it in a test and close the gap."},
		{2, "Explain how the matching of supplier articles works and where it guesses."},
		{3, "Upgrade the index to the new version of the library and list what changed for us."},
		{4, "Add a queue with priorities to the mailer: order letters before newsletters."},
		{5, "Make the checkout form work without JavaScript, and usable with a keyboard alone."},
		{0, "The tests of checkout take 90 seconds, most of it waiting. Find the sleeps and replace them."},
		{1, "Write the report of slow-moving stock that Jonas asked for, as a command that prints a table."},
	}
}

// orders are standing orders of people, some of them repeated.
func orders() []string {
	return []string{
		"Always run the tests with -race before you say that something works.",
		"Never edit files below gen/, they are generated.",
		"We use pnpm here, not npm.",
		"Always write migrations so that the version that runs keeps working.",
		"In this repository we never sleep in tests, we wait for a signal rather than a time.",
	}
}

// followUps are replies of people to an answer.
func followUps() []string {
	return []string{
		"Good. Now write a test that fails without the change.",
		"Please look whether the same mistake is made elsewhere in {folder}.",
		"Run the tests of {folder} again and show me what they print.",
		"What happens when the {noun} is empty?",
		"Commit that with a message that says why, not what.",
		"Can the {noun} be {done} twice? Make sure that it cannot.",
		"Explain in two sentences why that happened.",
		"Take the second way that you named, it is easier to take back.",
		"Also write down in docs/{noun}.md how it works now.",
	}
}

// trouble is a failing test's cause: its output, the diagnosis, and the lesson.
type trouble struct{ prints, seen, learned string }

func troubles() []trouble {
	return []trouble{
		{"{symbol}: the {noun} was {done} twice", "{Symbol} runs before the {noun} is locked.", "The issue was that {symbol} ran before the {noun} was locked. The fix is to take the lock in {other} and to give it to {symbol}."},
		{"{symbol}: got 3 rows of {noun}, want 1", "Rows of the test before are still there.", "The issue was that tests share one schema. The fix is to open a schema for each test with testdb.Open."},
		{"{symbol}: {noun} of 2026-03-29 is one hour off", "Local time, and the clock changes on that day.", "The issue was that {symbol} counted days in local time. The fix is to count them in UTC and to convert when they are shown."},
		{"{symbol}: context deadline exceeded", "The {noun} is fetched once for each row.", "The issue was that {symbol} asked the database once for each {noun}. The fix is to read all of them in {other} with one query."},
		{"{symbol}: want 19.99, got 19.990000000000002", "Amounts as floats again.", "The issue was that amounts were added as floats. The fix is to use money.Amount, which counts cents."},
		{"{symbol}: panic: assignment to entry in nil map", "The map is only made where the {noun} is new.", "The issue was that {symbol} wrote into a map that was never made. The fix is to make it in {other}."},
		{"{symbol}: golden file differs", "A map's order decides what comes first.", "The issue was that {symbol} ranged over a map. The fix is to sort the keys before they are written."},
		{"{symbol}: connection refused: localhost:9200", "Nobody starts the search server for this test.", "The issue was that the search server was not running. The fix is to start it with make services before the tests."},
	}
}

// writer generates text for files, output and messages. The same source yields the same words.
type writer struct {
	random *rand.Rand
	area   area
}

func newWriter(seed, stream uint64, of area) *writer {
	return &writer{random: rand.New(rand.NewPCG(seed, stream)), area: of} //nolint:gosec // the same words each time
}

func (w *writer) pick(of []string) string   { return of[w.random.IntN(len(of))] }
func (w *writer) noun() string              { return w.pick(w.area.nouns) }
func (w *writer) verb() string              { return w.pick(w.area.verbs) }
func (w *writer) chance(percent int) bool   { return w.random.IntN(100) < percent }
func (w *writer) between(low, high int) int { return low + w.random.IntN(high-low+1) }

// symbol is the name of a function.
func (w *writer) symbol() string { return w.verb() + title(w.noun()) }

// file is a path in the area.
func (w *writer) file() string {
	ending := ".go"
	if strings.HasPrefix(w.area.folder, "web/") {
		ending = ".ts"
	}
	if w.chance(25) {
		ending = strings.Replace(ending, ".", "_test.", 1)
	}
	return w.area.folder + "/" + w.noun() + "_" + w.verb() + ending
}

// code is a file of about so many bytes, with line numbers.
func (w *writer) code(size int) string {
	var out strings.Builder
	line := w.between(1, 40)
	put := func(format string, values ...string) {
		arguments := make([]any, len(values))
		for i, value := range values {
			arguments[i] = value
		}
		fmt.Fprintf(&out, "%6d\t", line)
		fmt.Fprintf(&out, format, arguments...)
		out.WriteByte('\n')
		line++
	}
	for out.Len() < size {
		name, noun, other := w.symbol(), w.noun(), w.noun()
		put("// %[1]s %[2]ss the %[3]s of a %[4]s once it was checked.", name, w.verb(), noun, other)
		put("func (s *Store) %[1]s(ctx context.Context, %[2]s %[3]s) (*%[4]s, error) {", name, noun, title(noun), title(other))
		put("\tif %[1]s.ID == \"\" {", noun)
		put("\t\treturn nil, fmt.Errorf(\"%[1]s: %[2]s has no id\", %[3]q)", w.verb(), noun, name)
		put("\t}")
		for range w.between(1, 4) {
			put("\t%[1]s, err := s.%[2]s(ctx, %[3]s.%[4]sID, s.limits.%[4]s)", w.noun(), w.symbol(), noun, title(w.noun()))
			put("\tif err != nil {")
			put("\t\treturn nil, fmt.Errorf(\"%[1]s %[2]s %%s: %%w\", %[2]s.ID, err)", w.verb(), noun)
			put("\t}")
		}
		put("\ts.log.Info(%[1]q, \"%[2]s\", %[2]s.ID, \"took\", s.now().Sub(began))", w.verb()+" "+noun, noun)
		put("\treturn &%[1]s{%[2]s: %[3]s, At: s.now()}, nil", title(other), title(noun), noun)
		put("}")
		put("")
	}
	return out.String()
}

// tested is the output of the area's tests.
func (w *writer) tested(size int, failing string) string {
	var out strings.Builder
	for out.Len() < size {
		fmt.Fprintf(&out, "=== RUN   Test%[1]sOf%[2]s\n--- PASS: Test%[1]sOf%[2]s (0.%02[3]ds)\n", title(w.verb()), title(w.noun()), w.between(1, 80))
	}
	if failing != "" {
		fmt.Fprintf(&out, "--- FAIL: Test%[1]s (0.04s)\n    %[2]s\n%[5]s\n%[5]s\tnorthbeam/%[3]s\t1.%03[4]ds\n", title(w.symbol()), failing, w.area.folder, w.between(1, 999), "FAIL")
		return "Exit code 1\n" + out.String()
	}
	fmt.Fprintf(&out, "PASS\nok  \tnorthbeam/%s\t1.%03ds\n", w.area.folder, w.between(1, 999))
	return out.String()
}

// found is the output of a search.
func (w *writer) found(size int, symbol string) string {
	var out strings.Builder
	for out.Len() < size {
		fmt.Fprintf(&out, "%s:%d:\t%s, err := s.%s(ctx, %s.ID)\n", w.file(), w.between(12, 400), w.noun(), symbol, w.noun())
	}
	return out.String()
}

// title capitalizes a word.
func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// past is the past participle of one of the areas' verbs.
func past(verb string) string {
	irregular := map[string]string{"split": "split", "cut": "cut", "send": "sent", "build": "built", "hide": "hidden", "show": "shown", "drop": "dropped", "submit": "submitted", "defer": "deferred", "retry": "retried"}
	if known, is := irregular[verb]; is {
		return known
	}
	return strings.TrimSuffix(verb, "e") + "ed"
}
