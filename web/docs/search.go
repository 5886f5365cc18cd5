package docs

import (
	"cmp"
	"slices"
	"strings"
)

const (
	maxHits = 30
	around  = 90 // bytes of text on each side of a match
)

// hit is a section that contains all words of the query.
type hit struct {
	Page, Title, Path string
	Before, Match     string // of an excerpt; Match is "" if only titles match
	After             string
	score             int
}

// search returns the sections that contain every word, best first: matches in their title, in their page's
// title, and then in their text.
func (l *library) search(query string) []hit {
	wanted := strings.Fields(strings.ToLower(query))
	if len(wanted) == 0 {
		return nil
	}
	var hits []hit
	for _, group := range l.groups {
		for _, page := range group.Pages {
			for _, section := range page.Sections {
				if found, is := match(page, section, wanted); is {
					hits = append(hits, found)
				}
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits[:min(len(hits), maxHits)]
}

// match looks for all words in a section.
func match(page *page, section section, wanted []string) (hit, bool) {
	found := hit{Page: page.Title, Title: section.Title, Path: page.Path()}
	if section.Anchor != "" {
		found.Path += "#" + section.Anchor
	}
	title, text, of := strings.ToLower(section.Title), strings.ToLower(section.Text), strings.ToLower(page.Title)
	for _, word := range wanted {
		inTitle, times := strings.Contains(title, word), strings.Count(text, word)
		if !inTitle && times == 0 {
			return hit{}, false
		}
		found.score += min(times, 9)
		if inTitle {
			found.score += 100
		}
		if strings.Contains(of, word) {
			found.score += 10
		}
	}
	found.excerpt(section.Text, wanted)
	return found, true
}

// excerpt returns the text around the first word found, or the section's beginning.
func (h *hit) excerpt(text string, wanted []string) {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // a letter's lower case has another length
		lower = text
	}
	for _, word := range wanted {
		if at := strings.Index(lower, word); at >= 0 {
			h.Before, h.Match, h.After = end(text[:at], around), text[at:at+len(word)], start(text[at+len(word):], around)
			return
		}
	}
	h.Before = start(text, 2*around)
}

// start returns the first words of a text, limited in bytes.
func start(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:max(0, strings.LastIndexByte(text[:most], ' '))] + " …"
}

// end returns the last words of a text, limited in bytes.
func end(text string, most int) string {
	if len(text) <= most {
		return text
	}
	_, rest, _ := strings.Cut(text[len(text)-most:], " ")
	return "… " + rest
}
