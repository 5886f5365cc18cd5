package redaction

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// planLines are the numbering plans of all countries: on each line a country's code and what its
// numbers look like behind that. They are those of libphonenumber, which links two megabytes more.
//
//go:embed plans.txt
var planLines string

// plans returns what the numbers behind each country code look like. A plan is read when it is
// first asked for.
var plans = sync.OnceValue(func() map[string]func() *regexp.Regexp {
	known := make(map[string]func() *regexp.Regexp)
	for line := range strings.Lines(planLines) {
		code, form, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[code] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^(?:" + form + ")$") })
	}
	return known
})

// validPhone returns a number, given by its digits with the country's code, in the form of E.164; "" if
// no plan has it.
func validPhone(digits string) string {
	const longestCode = 3
	for size := 1; size <= min(longestCode, len(digits)); size++ {
		plan, exists := plans()[digits[:size]]
		if !exists {
			continue
		}
		// Many write the zero with which a number is dialed inside its country: +49 (0) 30 …
		for _, national := range []string{digits[size:], strings.TrimPrefix(digits[size:], "0")} {
			if plan().MatchString(national) {
				return "+" + digits[:size] + national
			}
		}
	}
	return ""
}
