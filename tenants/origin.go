package tenants

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Origins are the origins of pages whose scripts may read the proxy's answers in a browser, in the form that
// browsers send: https://chat.example.com, http://localhost:5173, app://obsidian.md. An empty list allows no
// pages.
type Origins []string

// Allow reports whether pages of an origin may read answers.
func (o Origins) Allow(origin string) bool {
	return slices.Contains(o, strings.ToLower(origin))
}

// Normal returns the origins in the form that browsers send, without duplicates.
func (o Origins) Normal() Origins {
	var kept Origins
	for _, origin := range o {
		if origin = strings.ToLower(strings.TrimSpace(origin)); origin != "" && !slices.Contains(kept, origin) {
			kept = append(kept, origin)
		}
	}
	return kept
}

func (o Origins) validate() error {
	if len(o) > maxPatterns {
		return Invalid{Field: "browser_origins", Message: fmt.Sprintf("must have at most %d entries", maxPatterns)}
	}
	for _, origin := range o {
		if !isOrigin(origin) {
			return Invalid{Field: "browser_origins", Message: fmt.Sprintf(
				"has %s, which is not the whole origin of a page, such as https://chat.example.com or http://localhost:5173: no *, no path, no / at the end", strconv.Quote(origin))}
		}
	}
	return nil
}

// isOrigin reports whether a text is exactly one origin: a scheme and a host, optionally with a port.
func isOrigin(text string) bool {
	read, err := url.Parse(text)
	return err == nil && len(text) <= maxPattern && read.Scheme != "" && read.Hostname() != "" && !strings.Contains(text, "*") &&
		strings.EqualFold(text, read.Scheme+"://"+read.Host) && !strings.HasSuffix(read.Host, ":") && !strings.ContainsFunc(text, notInPattern)
}
