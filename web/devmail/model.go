package devmail

import (
	"regexp"
	"time"

	"palimpsest/tenants"
)

// model is the page's data.
type model struct {
	Mails []mail
	Now   time.Time
}

// mail is a mail on the page.
type mail struct {
	tenants.WaitingMail

	Parts []part
}

// part is a piece of a mail's text.
type part struct{ Text, Path string } // Path is one of our links; "" for plain text

func newModel(mails []tenants.WaitingMail, now time.Time) model {
	page := model{Now: now}
	for _, kept := range mails {
		page.Mails = append(page.Mails, mail{WaitingMail: kept, Parts: parts(kept.Text)})
	}
	return page
}

// parts splits a text at its links, which are reduced to their paths on this site.
func parts(text string) []part {
	link := regexp.MustCompile(`https?://[^/\s]+(/[^\s]*)`)
	var found []part
	end := 0
	for _, at := range link.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, part{Text: text[end:at[0]]}, part{Text: text[at[0]:at[1]], Path: text[at[2]:at[3]]})
		end = at[1]
	}
	return append(found, part{Text: text[end:]})
}
