package tokens

import (
	"unicode"
	"unicode/utf8"
)

// class is a character's class in the tokenizer's pattern. The pattern has two kinds of letters: those
// allowed in a word's upper-case head and those in its lower-case tail. Many scripts and all marks are both.
type class uint8

const (
	upper   class = 1 << iota // Lu Lt Lm Lo M
	lower                     // Ll Lm Lo M
	letter                    // L
	mark                      // M
	number                    // N
	space                     // White_Space
	newline                   // \r \n
)

// classified is the first character whose class is looked up in Unicode's own tables. All scripts in daily
// use and all emoji come before it.
const classified = 0x20000

// classes holds the class of every character before classified.
type classes [classified]class

func newClasses() *classes {
	table := new(classes)
	for _, kind := range kinds() {
		for _, r := range kind.table.R16 {
			table.add(rune(r.Lo), rune(r.Hi), rune(r.Stride), kind.class)
		}
		for _, r := range kind.table.R32 {
			table.add(rune(r.Lo), rune(r.Hi), rune(r.Stride), kind.class) //nolint:gosec // characters have 21 bits
		}
	}
	return table
}

type kind struct {
	table *unicode.RangeTable
	class class
}

func kinds() []kind {
	return []kind{
		{unicode.Lu, upper | letter},
		{unicode.Lt, upper | letter},
		{unicode.Lm, upper | lower | letter},
		{unicode.Lo, upper | lower | letter},
		{unicode.Ll, lower | letter},
		{unicode.M, upper | lower | mark},
		{unicode.N, number},
		{unicode.White_Space, space},
		{&unicode.RangeTable{R16: []unicode.Range16{{Lo: '\n', Hi: '\r', Stride: '\r' - '\n'}}}, newline},
	}
}

func (c *classes) add(from, to, stride rune, set class) {
	for r := from; r <= to && r < classified; r += stride {
		c[r] |= set
	}
}

// at returns the class of the character at text[i] and its length in bytes.
func (c *classes) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return c[b], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	if r < classified {
		return c[r], size
	}
	return classOf(r), size
}

// classOf returns the class of a character outside our table.
func classOf(r rune) class {
	var found class
	for _, kind := range kinds() {
		if unicode.Is(kind.table, r) {
			found |= kind.class
		}
	}
	return found
}
