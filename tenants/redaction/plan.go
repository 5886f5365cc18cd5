package redaction

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// planLines are the numbering plans of all countries: each line has a country's code and the pattern of its
// numbers behind it. They come from libphonenumber, which itself would link two more megabytes.
//
//go:embed plans.txt
var planLines string

// plans returns the pattern of the numbers behind each country code. A pattern is compiled on first use.
var plans = sync.OnceValue(func() map[string]func() *regexp.Regexp {
	known := make(map[string]func() *regexp.Regexp)
	for line := range strings.Lines(planLines) {
		code, form, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[code] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^(?:" + form + ")$") })
	}
	return known
})

// validPhone returns a number, from its digits with the country's code, as E.164; "" if it does not match a
// plan.
func validPhone(digits string) string {
	const longestCode = 3
	for size := 1; size <= min(longestCode, len(digits)); size++ {
		plan, exists := plans()[digits[:size]]
		if !exists {
			continue
		}
		// Many people write the zero for calls within the country: +49 (0) 30 …
		for _, national := range []string{digits[size:], strings.TrimPrefix(digits[size:], "0")} {
			if plan().MatchString(national) {
				return "+" + digits[:size] + national
			}
		}
	}
	return ""
}
