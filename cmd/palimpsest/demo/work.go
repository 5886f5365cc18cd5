package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// entry is an event of the demo at a time.
type entry struct {
	when time.Time
	does func(ctx context.Context) error
}

// diary holds all events, in order.
func (f *filling) diary() []entry {
	diary := slices.Concat(f.routine(), f.episodes(), f.changes(), f.figures())
	slices.SortStableFunc(diary, func(a, b entry) int { return a.when.Compare(b.when) })
	return diary
}

// work lets everything happen.
func (f *filling) work(ctx context.Context) error {
	for _, entry := range f.diary() {
		if err := f.at(ctx, entry.when); err != nil {
			return err
		}
		if err := entry.does(ctx); err != nil {
			return err
		}
	}
	return f.settle(ctx)
}

// desk is a person's setup: their key, their client and its model.
type desk struct{ key, program, model string }

func desks() []desk {
	return []desk{
		{keyMira, claudeCode, "claude-sonnet-4-5"},
		{keyMira, claudeCode, "claude-sonnet-4-5"},
		{keyAiko, claudeCode, "claude-opus-4-5"},
		{keyAiko, pi, "claude-sonnet-4-5"},
		{keyTom, openCode, "gpt-5.1"},
		{keyTom, codex, "gpt-5.1-codex"},
		{keyNoor, claudeCode, "claude-opus-4-5"},
		{keyRavi, claudeCode, "claude-opus-4-5"},
		{keyAgents, codex, "gpt-5.1-codex"},
		{keyCursor, cursor, "gpt-5.1"},
	}
}

// The hours at which ordinary sessions begin, by UTC.
const (
	opens = 6
	shuts = 17
)

// textDays is the number of the newest days whose ordinary sessions are kept with their text.
const textDays = 30

// routine are the ordinary sessions of the newest days, and the questions of the shop's customers.
func (f *filling) routine() []entry {
	var diary []entry
	number := uint64(0)
	for day := f.Days - min(f.Days, textDays); day < f.Days; day++ {
		// Generate the same sessions each time, regardless of the other days.
		random := rand.New(rand.NewPCG(f.Seed, uint64(day))) //nolint:gosec // no secret
		begins := f.dawn(day)
		sessions, onWeekend := 2+random.IntN(3), random.IntN(2)
		if weekday := begins.Weekday(); weekday == time.Saturday || weekday == time.Sunday {
			sessions = onWeekend
		}
		if f.isSmall() {
			sessions = 1
		}
		gap := time.Duration(shuts-opens) * time.Hour / time.Duration(max(sessions, 1))
		for i := range sessions {
			number++
			when := begins.Add(opens*time.Hour + time.Duration(i)*gap + time.Duration(random.IntN(50))*time.Minute)
			diary = append(diary, f.ordinary(number, when, random))
		}
		diary = append(diary, f.questions(number, begins.Add(20*time.Hour), 3+random.IntN(6), random))
	}
	return slices.DeleteFunc(diary, func(e entry) bool { return e.when.After(f.Until.Add(-time.Hour)) })
}

// ordinary is one session at someone's desk.
func (f *filling) ordinary(number uint64, when time.Time, random *rand.Rand) entry {
	desk := desks()[random.IntN(len(desks()))]
	if desk.key == keyCursor && when.Before(f.share(0.40)) {
		desk.key = keyIntern
	}
	steps, size := 3+random.IntN(9), 1500+random.IntN(2500)
	switch lot := random.IntN(100); {
	case lot < 12: // a long one, which reaches its window
		steps, size = 54+random.IntN(34), 6500+random.IntN(3000)
	case lot < 36:
		steps = 12 + random.IntN(22)
	}
	order := ""
	if random.IntN(100) < 30 {
		order = orders()[random.IntN(len(orders()))]
	}
	task := tasks()[random.IntN(len(tasks()))]
	return entry{when, func(ctx context.Context) error {
		t := &talk{
			program: desk.program, key: desk.key, model: desk.model, name: f.name(number),
			steps: plan(f.Seed, number, outline{task: task, steps: steps, results: size, order: order}),
		}
		if desk.key == keyAgents {
			t.header = map[string][]string{"X-Palimpsest-Tag-Team": {"platform"}, "X-Palimpsest-Tag-Run": {fmt.Sprintf("nightly-%d", number)}}
		}
		return f.hold(ctx, t)
	}}
}

// questions are those of the shop's customers in one evening; many ask the same.
func (f *filling) questions(number uint64, when time.Time, count int, random *rand.Rand) entry {
	asked := [][2]string{
		{"How do I send a jacket back?", "Print the label from your order page and bring the parcel to any post office within 30 days. The money is back within five working days."},
		{"Which sleeping bag is right for minus ten degrees?", "Look for a comfort temperature of minus ten, such as the Fell 900. Filters on the page of sleeping bags show the comfort temperature."},
		{"How do I wash a rain jacket?", "At 30 degrees with a detergent for membranes, without softener. Dry it warm afterwards: warmth brings the coating back."},
		{"What is the difference between the tents Fell 2 and Fell 3?", "The Fell 3 is 30 cm wider and has a second entrance. It weighs 600 g more."},
		{"How can I use two gift cards for one order?", "Enter the first card at checkout, choose Add another, and enter the second. What is left stays on the cards."},
	}
	picked := make([]int, count)
	for i := range picked {
		picked[i] = random.IntN(len(asked))
	}
	return entry{when, func(ctx context.Context) error {
		for i, which := range picked {
			t := &talk{program: library, key: keySupport, model: "claude-haiku-4-5", name: fmt.Sprintf("questions %d.%d", number, i)}
			t.steps = []step{{typed: asked[which][0], pause: time.Duration(2+which) * time.Minute, says: asked[which][1]}}
			if err := f.hold(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}}
}
