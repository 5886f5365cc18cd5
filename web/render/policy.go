package render

import (
	"regexp"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

// newPolicy returns the allow-list with exactly the elements and attributes that our renderers write. It has
// no pictures, forms, frames, styles or ids.
func newPolicy() *bluemonday.Policy {
	policy := bluemonday.NewPolicy()
	policy.AllowElements("p", "br", "hr", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "em", "strong", "del",
		"pre", "code", "table", "thead", "tbody", "tr", "th", "td", "span", "div")
	policy.AllowAttrs("class").Matching(classes()).OnElements("pre", "code", "span", "div")
	policy.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	policy.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	policy.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("div")
	policy.AllowAttrs("role").Matching(regexp.MustCompile(`^region$`)).OnElements("div")
	policy.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^Table$`)).OnElements("div")
	policy.AllowAttrs("href").OnElements("a")
	policy.AllowAttrs("rel").Matching(regexp.MustCompile("^" + linkRel + "$")).OnElements("a")
	policy.AllowURLSchemes("http", "https", "mailto")
	policy.AllowRelativeURLs(false)
	policy.RequireParseableURLs(true)
	return policy
}

// classes returns a pattern for the allowed classes.
func classes() *regexp.Regexp {
	names := []string{"chroma", classHost, classPicture, classScroll}
	for kind := range look {
		names = append(names, classOf(kind))
	}
	slices.Sort(names)
	return regexp.MustCompile(`^(` + strings.Join(slices.Compact(names), "|") + `)$`)
}
