package tenants

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// AuditPage is how many entries are in memory while a list is written.
const AuditPage = 500

// AuditPages returns the entries of a list that follow one, the newest first, at
// most AuditPage; for uuid.Nil the first ones.
type AuditPages func(ctx context.Context, before uuid.UUID) ([]AuditEntry, error)

// Each calls do with every entry.
func (p AuditPages) Each(ctx context.Context, do func(entry *AuditEntry) error) error {
	before := uuid.Nil
	for {
		entries, err := p(ctx, before)
		if err != nil {
			return err
		}
		for i := range entries {
			if err := do(&entries[i]); err != nil {
				return err
			}
		}
		if len(entries) < AuditPage {
			return nil
		}
		before = entries[len(entries)-1].ID
	}
}

// WriteAuditCSV writes a list as CSV (RFC 4180) with a heading. A cell that a
// spreadsheet would take for a formula begins with an apostrophe.
func WriteAuditCSV(ctx context.Context, w io.Writer, pages AuditPages) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write([]string{"at", "actor", "user", "api_key", "address", "action", "target", "before", "after"}); err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	err := pages.Each(ctx, func(entry *AuditEntry) error {
		before, after, err := cells(entry.Before, entry.After)
		if err != nil {
			return err
		}
		return out.Write([]string{
			entry.At.UTC().Format(time.RFC3339Nano), CSVCell(entry.Actor.Name), CSVID(entry.Actor.User), CSVID(entry.Actor.APIKey),
			CSVCell(entry.Actor.From), string(entry.Action), CSVCell(entry.Target), before, after,
		})
	})
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	if err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	return nil
}

// cells returns fields as JSON; empty for none.
func cells(before, after Fields) (string, string, error) {
	texts := [2]string{}
	for i, fields := range []Fields{before, after} {
		if fields == nil {
			continue
		}
		text, err := json.Marshal(fields)
		if err != nil {
			return "", "", err
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1], nil
}

// CSVCell returns text that no spreadsheet computes (OWASP, CSV injection), in locales that
// compute the wide forms of signs as well.
func CSVCell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}

// CSVTime returns a time as a cell of CSV, in UTC; nothing for the zero time.
func CSVTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// CSVID returns an id as a cell of CSV; nothing for uuid.Nil.
func CSVID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
