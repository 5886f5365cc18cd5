package apiclients

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// localAddress is the proxy's address in docs/clients.md.
const localAddress = "http://127.0.0.1:8080"

// Guide holds the snippets of the docs, by section and language, in their order.
type Guide map[string]map[string][]string

// GuidePages are the pages of the docs with the snippets.
func GuidePages() []string { return []string{"clients.md", "providers.md"} }

// ReadGuide finds the snippets in the texts of pages: the blocks of each language below each heading of the second
// or third level.
func ReadGuide(pages ...string) Guide {
	guide := Guide{}
	heading := regexp.MustCompile("(?m)^###? ")
	block := regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)\n```$")
	for _, section := range heading.Split(strings.Join(pages, "\n"), -1) {
		title, rest, _ := strings.Cut(section, "\n")
		for _, match := range block.FindAllStringSubmatch(rest, -1) {
			if guide[title] == nil {
				guide[title] = map[string][]string{}
			}
			guide[title][match[1]] = append(guide[title][match[1]], match[2])
		}
	}

	return guide
}

// snippet returns the first snippet that holds a text, with the address of the session's proxy.
func (s *session) snippet(section, language string, holding ...string) (string, error) {
	mark := strings.Join(holding, "")
	snippets := s.guide[section][language]
	at := slices.IndexFunc(snippets, func(text string) bool { return strings.Contains(text, mark) })
	if at < 0 {
		return "", fmt.Errorf("the docs have no %s snippet for %s %s", language, section, mark)
	}
	text := snippets[at]
	if !strings.Contains(text, localAddress) {
		return "", fmt.Errorf("the %s snippet for %s %s in the docs does not name %s", language, section, mark, localAddress)
	}

	return strings.ReplaceAll(text, localAddress, s.url), nil
}
