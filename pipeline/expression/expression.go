// Package expression provides regular expressions compiled at their first use, so that commands without them
// start faster.
package expression

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression. Its methods are those of the regexp package, and panic at the first use of
// an invalid one.
type Regexp struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns a regular expression.
func New(text string) *Regexp { return &Regexp{text: text} }

// Compiled returns the expression as one of the regexp package.
func (r *Regexp) Compiled() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.text) })
	return r.compiled
}

// MatchString reports whether text holds a match.
func (r *Regexp) MatchString(text string) bool { return r.Compiled().MatchString(text) }

// FindString returns the first match in text.
func (r *Regexp) FindString(text string) string { return r.Compiled().FindString(text) }

// FindStringIndex returns the position of the first match.
func (r *Regexp) FindStringIndex(text string) []int { return r.Compiled().FindStringIndex(text) }

// FindStringSubmatch returns the first match and its groups.
func (r *Regexp) FindStringSubmatch(text string) []string {
	return r.Compiled().FindStringSubmatch(text)
}

// FindStringSubmatchIndex returns the positions of the first match and its groups.
func (r *Regexp) FindStringSubmatchIndex(text string) []int {
	return r.Compiled().FindStringSubmatchIndex(text)
}

// FindAllString returns up to n matches, all if n is negative.
func (r *Regexp) FindAllString(text string, n int) []string {
	return r.Compiled().FindAllString(text, n)
}

// FindAllStringIndex returns the positions of up to n matches.
func (r *Regexp) FindAllStringIndex(text string, n int) [][]int {
	return r.Compiled().FindAllStringIndex(text, n)
}

// FindAllStringSubmatch returns up to n matches with their groups.
func (r *Regexp) FindAllStringSubmatch(text string, n int) [][]string {
	return r.Compiled().FindAllStringSubmatch(text, n)
}

// FindAllStringSubmatchIndex returns the positions of up to n matches and their groups.
func (r *Regexp) FindAllStringSubmatchIndex(text string, n int) [][]int {
	return r.Compiled().FindAllStringSubmatchIndex(text, n)
}

// ReplaceAllString returns text with matches replaced.
func (r *Regexp) ReplaceAllString(text, with string) string {
	return r.Compiled().ReplaceAllString(text, with)
}
