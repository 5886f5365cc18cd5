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

// AuditPage bounds the entries in memory while a list is written.
const AuditPage = 500

// AuditPages returns the entries after before, the newest first, at most AuditPage; uuid.Nil starts at the
// newest.
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

// WriteAuditCSV writes a list as CSV (RFC 4180) with a heading. A cell that a spreadsheet would evaluate as a
// formula begins with an apostrophe.
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

// cells returns fields as JSON; "" if absent.
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

// CSVCell escapes text so that spreadsheets do not evaluate it (OWASP, CSV injection), including wide forms
// of signs in some locales.
func CSVCell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}

// CSVTime returns a time as a cell of CSV, in UTC; "" for the zero time.
func CSVTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// CSVID returns an id as a cell of CSV; "" for uuid.Nil.
func CSVID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
