package recall

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
)

// holed is an archive of so many messages without some of them.
type holed struct {
	messages int
	missing  []int
}

func (h holed) Originals(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, from, to int) (found []archive.Entry, err error) {
	for i := from; i < min(to, h.messages); i++ {
		if !slices.Contains(h.missing, i) {
			found = append(found, archive.Entry{Index: i, Raw: []byte(fmt.Sprintf("message %03d", i))})
		}
	}
	return found, nil
}

// A range of messages is read to its end, in one answer or page by page, also over more messages than are
// read together and over ones that the archive does not have.
func TestRangeIsReadToItsEndWhereverMessagesAreMissing(t *testing.T) {
	t.Parallel()
	const length = len("message 000")
	for name, c := range map[string]struct {
		holed
		from, to int
	}{
		"one":                 {holed{messages: 1}, 0, 1},
		"as many as at once":  {holed{messages: atOnce}, 0, atOnce},
		"one more":            {holed{messages: atOnce + 1}, 0, atOnce + 1},
		"from the middle":     {holed{messages: 40}, 15, 33},
		"behind the end":      {holed{messages: 20}, 10, 1000},
		"first missing":       {holed{40, []int{0}}, 0, 40},
		"middle missing":      {holed{40, []int{5, 6}}, 0, 40},
		"last at once":        {holed{40, []int{atOnce - 1}}, 0, 40},
		"first of the second": {holed{40, []int{atOnce}}, 0, 40},
		"last missing":        {holed{40, []int{39}}, 0, 40},
	} {
		var want []string
		for i := c.from; i < min(c.to, c.messages); i++ {
			if !slices.Contains(c.missing, i) {
				want = append(want, fmt.Sprintf("message %03d", i))
			}
		}
		for _, left := range []int{4, 7, length, length + 1, length + 5, 3 * length, 1000 * length} {
			pointer := archive.Pointer{From: c.from, To: c.to}
			var got []string
			cut := ""
			pages := 0
			for at, more := (place{message: c.from}), true; more; pages++ {
				p := page{server: &Server{config: Config{Archive: c.holed}}, pointer: pointer, left: left}
				if err := p.read(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				size := 0
				for _, message := range p.messages {
					size += len(message.Text)
					if cut += message.Text; len(cut) == message.Total {
						got, cut = append(got, cut), ""
					}
				}
				if more = p.next != ""; more {
					var err error
					if at, err = parseCursor(p.next, pointer); err != nil {
						t.Fatal(err)
					}
				}
				if size > left || more && len(p.messages) == 0 || pages > 1000 {
					t.Fatalf("%s: page %d of %d bytes has %d", name, pages, left, size)
				}
			}
			if !slices.Equal(got, want) || cut != "" {
				t.Errorf("%s, %d bytes at once: %s", name, left, strings.Join(got, ", "))
			}
		}
	}
}
