package apiclients

import (
	"fmt"
	"regexp"
	"strings"
)

// localAddress is the proxy's address in docs/clients.md.
const localAddress = "http://127.0.0.1:8080"

// Guide holds the snippets of docs/clients.md, by section and language.
type Guide map[string]map[string]string

// ReadGuide finds the snippets in the text of docs/clients.md: the first block of each language below each
// heading of the second level.
func ReadGuide(text string) Guide {
	guide := Guide{}
	block := regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)\n```$")
	for section := range strings.SplitSeq("\n"+text, "\n## ") {
		title, rest, _ := strings.Cut(section, "\n")
		for _, match := range block.FindAllStringSubmatch(rest, -1) {
			if guide[title] == nil {
				guide[title] = map[string]string{}
			}
			if _, has := guide[title][match[1]]; !has {
				guide[title][match[1]] = match[2]
			}
		}
	}

	return guide
}

// snippet returns a snippet with the address of the session's proxy.
func (s *session) snippet(section, language string) (string, error) {
	text, found := s.guide[section][language]
	if !found {
		return "", fmt.Errorf("docs/clients.md has no %s snippet for %s", language, section)
	}
	if !strings.Contains(text, localAddress) {
		return "", fmt.Errorf("the %s snippet for %s in docs/clients.md does not name %s", language, section, localAddress)
	}

	return strings.ReplaceAll(text, localAddress, s.url), nil
}
