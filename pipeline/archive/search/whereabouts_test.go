package search_test

import (
	"testing"
	"time"

	"palimpsest/pipeline/archive/search"
)

func TestLocateReadsTheTimeThatIsNamed(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("elsewhere", -5*3600)
	now := time.Date(2028, time.February, 29, 15, 30, 0, 0, zone) // a Tuesday
	day := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 0, 0, 0, 0, zone)
	}
	for text, want := range map[string][2]time.Time{
		"What did the tests print today?":               {day(2028, 2, 29), day(2028, 3, 1)},
		"What did we decide yesterday?":                 {day(2028, 2, 28), day(2028, 2, 29)},
		"the lint errors of this week":                  {day(2028, 2, 28), day(2028, 3, 6)},
		"the lint errors of last week":                  {day(2028, 2, 21), day(2028, 2, 28)},
		"Which plan did we make last month?":            {day(2028, 1, 1), day(2028, 2, 1)},
		"the migration of 2027-12-31":                   {day(2027, 12, 31), day(2028, 1, 1)},
		"What broke on November 3?":                     {day(2027, 11, 3), day(2027, 11, 4)},
		"What broke on Nov. 3rd, 2026?":                 {day(2026, 11, 3), day(2026, 11, 4)},
		"What broke on 3 January?":                      {day(2028, 1, 3), day(2028, 1, 4)},
		"the plan that we made in May":                  {day(2027, 5, 1), day(2027, 6, 1)},
		"the plan that we made in December 2025, again": {day(2025, 12, 1), day(2026, 1, 1)},
		"What did I say on Friday?":                     {day(2028, 2, 25), day(2028, 2, 26)},
		"What did I say last Tuesday?":                  {day(2028, 2, 22), day(2028, 2, 23)},
		"the error of two days ago":                     {day(2028, 2, 27), day(2028, 2, 28)},
		"the error of an hour ago":                      {now.Add(-2 * time.Hour), now},
		"the error of 3 weeks ago":                      {now.AddDate(0, 0, -25), now.AddDate(0, 0, -17)},
		"the error of a month ago":                      {now.AddDate(0, -1, -15), now.AddDate(0, -1, 15)},
		"May I see the tests march on?":                 {},
		"What is on the monday.com board?":              {},
	} {
		_, where := search.Locate(text, now)
		if !where.From.Equal(want[0]) || !where.To.Equal(want[1]) {
			t.Errorf("%q: from %s to %s, want %s to %s", text, where.From, where.To, want[0], want[1])
		}
		if where.NamesTime() == want[0].IsZero() || where.NamesTime() && (!where.Holds(where.From) || where.Holds(where.To) || where.Holds(where.From.Add(-1))) {
			t.Errorf("%q: holds another time than it names", text)
		}
	}
}

func TestTimeReturnsTheWordsThatNameIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2028, time.February, 29, 15, 30, 0, 0, time.UTC) // a Tuesday
	for text, want := range map[string]string{
		"refund rounding last week":           "last week",
		"the session of last week on refunds": "of last week",
		"quarry on 2028-02-03, and more":      "on 2028-02-03",
		"the plan that we made in January.":   "in January",
		"what did I say on Friday?":           "on Friday",
		`the page "sales of last week"`:       "",
		"refunds":                             "",
	} {
		words, from, to := search.Time(text, now)
		if words != want || from.Before(to) != (want != "") {
			t.Errorf("%q: %q from %s to %s, want %q", text, words, from, to, want)
		}
	}
}

func TestLocateReadsTheSessionThatIsNamed(t *testing.T) {
	t.Parallel()
	const title = "Fix the flaky parser tests"
	for text, want := range map[string]struct {
		rest  string
		names float64
	}{
		`In the session about "the flaky parser": what did the tests print?`:   {"what did the tests print?", 1},
		"What did the tests print in our long chat called “Flaky exporter”?":   {"What did the tests print  ?", 0.5},
		"What was printed in the conversation on parser tests, when it broke?": {"What was printed in the conversation on parser tests, when it broke?", 1},
		"What did the parser tests print in that session?":                     {"What did the parser tests print in that session?", 0},
		`in the session about "parser"`:                                        {`in the session about "parser"`, 1},
	} {
		rest, where := search.Locate(text, time.Now())
		if names := where.Names(title); names != want.names || where.NamesSession() != (want.names > 0) {
			t.Errorf("%q names the session to %v, want %v", text, names, want.names)
		}
		if rest != want.rest {
			t.Errorf("%q asks for %q", text, rest)
		}
	}
}

func TestGainIsThatOfTheSessionAndOfTheTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	_, where := search.Locate(`What did we say yesterday in the session about "parsers"?`, now)
	then := now.AddDate(0, 0, -1)
	both, session, only, none := where.Gain("The parsers", then), where.Gain("The parsers", now), where.Gain("Exporters", then), where.Gain("", now)
	if both <= session || session <= only || only <= none || none != 1 {
		t.Errorf("gains of %v, %v, %v, %v", both, session, only, none)
	}
}
