package webtest

import (
	"slices"

	"github.com/PuerkitoBio/goquery"
)

// Form returns the names and values that a browser would send for the first matching form, with some values
// replaced.
func (p Page) Form(selector string, changes ...string) []string {
	var sent []string
	changed := map[string]string{}
	for i := 0; i+1 < len(changes); i += 2 {
		changed[changes[i]] = changes[i+1]
	}
	done := map[string]bool{}
	p.Find(selector).First().Find("input[name], select[name], textarea[name]").Each(func(_ int, input *goquery.Selection) {
		name, kind := input.AttrOr("name", ""), input.AttrOr("type", "")
		_, disabled := input.Attr("disabled")
		_, checked := input.Attr("checked")
		if value, is := changed[name]; is {
			if !done[name] {
				sent = append(sent, name, value)
			}
			done[name] = true
			return
		}
		if disabled || slices.Contains([]string{"checkbox", "radio"}, kind) && !checked {
			return
		}
		switch goquery.NodeName(input) {
		case "textarea":
			sent = append(sent, name, input.Text())
		case "select":
			sent = append(sent, name, input.Find("option[selected]").AttrOr("value", ""))
		default:
			sent = append(sent, name, input.AttrOr("value", "on"))
		}
	})
	return sent
}
