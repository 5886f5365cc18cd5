package mail_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/faulttest"
	"palimpsest/tenants"
	"palimpsest/tenants/mail"
)

// speaking returns the address of a mail server with fixed answers to commands; "" ends the connection
// without one. The text of a mail is the command "." and the greeting is that to "HELLO".
func speaking(t *testing.T, answers map[string]string) string {
	t.Helper()
	return faulttest.Serve(t, func(conn net.Conn) {
		lines, command := bufio.NewScanner(conn), "HELLO"
		for {
			answer, known := answers[command]
			if !known {
				answer = map[string]string{"HELLO": "220 ready", "DATA": "354 go on", "QUIT": "221 bye"}[command]
				if answer == "" {
					answer = "250 ok"
				}
			}
			if answer == "" {
				return
			}
			inText := command == "DATA" && strings.HasPrefix(answer, "354")
			_, _ = io.WriteString(conn, answer+"\r\n")
			for command = ""; lines.Scan(); {
				if command, _, _ = strings.Cut(lines.Text(), " "); !inText || command == "." {
					break
				}
			}
			if command == "" || inText && command != "." {
				return
			}
		}
	})
}

// fates is a store of two mails that notes what becomes of each.
type fates struct {
	mail.Store

	waiting  []tenants.WaitingMail
	outcomes map[uuid.UUID]string
}

func (f *fates) TakeMails(context.Context, time.Time, time.Time, int) ([]tenants.WaitingMail, error) {
	waiting := f.waiting
	f.waiting = nil
	return waiting, nil
}

func (f *fates) DelayMail(_ context.Context, id uuid.UUID, _ time.Time) error {
	f.outcomes[id] += "delayed"
	return nil
}

func (f *fates) DropMail(_ context.Context, id uuid.UUID) error {
	f.outcomes[id] += "dropped"
	return nil
}

// What a server answers decides alone: a mail that was taken is not sent again, one whose recipient is
// permanently rejected is dropped, and any other is tried again. Two mails of one pass fare the same.
func TestMailFaresAsTheServerAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[string]string
		outcome string
		store   string
	}{
		"takes it":                      {nil, mail.Sent, "dropped"},
		"takes it with other words":     {map[string]string{".": "250 2.0.0 queued as 7"}, mail.Sent, "dropped"},
		"takes it and says no good-bye": {map[string]string{"QUIT": ""}, mail.Sent, "dropped"},
		"takes it, and an odd good-bye": {map[string]string{"QUIT": "500 what"}, mail.Sent, "dropped"},
		"greets with an error":          {map[string]string{"HELLO": "554 no service here"}, mail.Failed, "delayed"},
		"is busy":                       {map[string]string{"HELLO": "421 too many connections"}, mail.Failed, "delayed"},
		"is a web server":               {map[string]string{"HELLO": "HTTP/1.1 400 Bad Request"}, mail.Failed, "delayed"},
		"ends the connection":           {map[string]string{"HELLO": ""}, mail.Failed, "delayed"},
		"refuses the sender":            {map[string]string{"MAIL": "550 not you"}, mail.Failed, "delayed"},
		"refuses the recipient now":     {map[string]string{"RCPT": "450 greylisted"}, mail.Failed, "delayed"},
		"refuses the recipient":         {map[string]string{"RCPT": "550 no such person"}, mail.Refused, "dropped"},
		"takes no text":                 {map[string]string{"DATA": "503 not now"}, mail.Failed, "delayed"},
		"refuses the text":              {map[string]string{".": "554 spam"}, mail.Failed, "delayed"},
		"fails with the text":           {map[string]string{".": "451 disk full"}, mail.Failed, "delayed"},
		"ends before it has the text":   {map[string]string{"DATA": ""}, mail.Failed, "delayed"},
		"ends after the text":           {map[string]string{".": ""}, mail.Failed, "delayed"},
	} {
		sender, err := mail.NewSMTP("smtp://"+speaking(t, c.answers), "no-reply@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		first, second := uuid.New(), uuid.New()
		store := &fates{outcomes: map[uuid.UUID]string{}}
		for _, id := range []uuid.UUID{first, second} {
			store.waiting = append(store.waiting, tenants.WaitingMail{ID: id, CreatedAt: time.Now(), Attempts: 1, Mail: hello()})
		}
		var outcomes []string
		outbox := mail.NewOutbox(mail.Config{
			Store: store, Sender: sender, Answer: func(context.Context) error { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Observe: func(outcome string) { outcomes = append(outcomes, outcome) },
		})
		if err := outbox.Pass(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(outcomes, []string{c.outcome, c.outcome}) || store.outcomes[first] != c.store || store.outcomes[second] != c.store {
			t.Errorf("%s: %v, %v, want %s and %s", name, outcomes, store.outcomes, c.outcome, c.store)
		}
	}
}

// The check needs a server that greets as mail servers do and takes the login.
func TestCheckNeedsAMailServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[string]string
		login   string
		passes  bool
	}{
		"greets":              {nil, "", true},
		"no good-bye":         {map[string]string{"QUIT": ""}, "", true},
		"refuses service":     {map[string]string{"HELLO": "554 no service here"}, "", false},
		"is busy":             {map[string]string{"HELLO": "421 too many connections"}, "", false},
		"a web server":        {map[string]string{"HELLO": "HTTP/1.1 400 Bad Request"}, "", false},
		"says no word":        {map[string]string{"HELLO": ""}, "", false},
		"takes no login":      {nil, "palimpsest:hunter2@", false},
		"refuses the login":   {map[string]string{"EHLO": "250-mail\r\n250 AUTH PLAIN", "AUTH": "535 wrong"}, "palimpsest:hunter2@", false},
		"offers another way":  {map[string]string{"EHLO": "250-mail\r\n250 AUTH GSSAPI", "AUTH": "235 welcome"}, "palimpsest:hunter2@", false},
		"an unfinished login": {map[string]string{"EHLO": "250-mail\r\n250 AUTH PLAIN", "AUTH": "454 later"}, "palimpsest:hunter2@", false},
	} {
		sender, err := mail.NewSMTP("smtp://"+c.login+speaking(t, c.answers), "no-reply@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := sender.Check(t.Context()); (err == nil) != c.passes || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A password goes to another machine only over TLS: the server is not asked to take it otherwise.
func TestPasswordNeedsTLSOnTheWayToAnotherMachine(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(speaking(t, map[string]string{"EHLO": "250-mail\r\n250 AUTH PLAIN LOGIN CRAM-MD5", "AUTH": "334 PDEyMz4="}))
	if err != nil {
		t.Fatal(err)
	}
	for host, says := range map[string]string{"127.0.0.1": "", "0.0.0.0": "STARTTLS"} { // the second is no loopback address by its name
		sender, err := mail.NewSMTP("smtp://palimpsest:hunter2@"+net.JoinHostPort(host, port), "no-reply@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = sender.Check(t.Context())
		if err == nil || strings.Contains(err.Error(), "STARTTLS") != (says != "") {
			t.Errorf("%s: %v", host, err)
		}
	}
}
